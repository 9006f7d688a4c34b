#!/bin/sh
# Prints a secret for each variable that docker-compose.yaml demands:  sh deploy/secrets.sh >.env
set -eu
umask 077
random() { # as letters that may stand in a URL
    head -c "$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}
for name in AIRFLOW_PASSWORD POSTGRES_PASSWORD REDIS_PASSWORD; do
    echo "$name=$(random 16)"
done
echo "AIRFLOW_JWT_SECRET=$(random 64)"
echo "AIRFLOW_SECRET_KEY=$(random 32)"
echo "AIRFLOW_FERNET_KEY=$(head -c 32 /dev/urandom | base64 | tr '+/' '-_')"
echo "AWS_ACCESS_KEY_ID=lake$(random 8)"
echo "AWS_SECRET_ACCESS_KEY=$(random 20)"
