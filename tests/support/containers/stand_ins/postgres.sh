# What the image's entrypoint does: the first start makes the cluster with the user and the database of the variables.
set -euo pipefail
data=/var/lib/postgresql/data
chown postgres "$data"
as_postgres() {
    setpriv --reuid postgres --regid postgres --init-groups "$@"
}
if [ ! -e "$data/PG_VERSION" ]; then
    echo "$POSTGRES_PASSWORD" >/run/postgresql/password
    as_postgres initdb --pgdata "$data" --username "$POSTGRES_USER" --pwfile /run/postgresql/password \
        --auth scram-sha-256 --encoding UTF8 --no-locale
    rm /run/postgresql/password
    echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
    as_postgres postgres --single -D "$data" postgres <<<"CREATE DATABASE \"$POSTGRES_DB\""
fi
exec setpriv --reuid postgres --regid postgres --init-groups postgres -D "$data" -c 'listen_addresses=*'
