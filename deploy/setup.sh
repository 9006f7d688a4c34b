#!/bin/sh
# Runs once before the services start: makes Airflow's tables, its pool `upkeep`, the bucket and the lake, where they do
# not exist yet.
# It waits for the database and the store, at most TRIES times ten seconds each, and may be run again at any time.
set -eu
TRIES=30

patiently() { # a command, tried until it succeeds
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        if [ "$tries" -ge "$TRIES" ]; then
            echo "setup: gave up after $tries tries: $*" >&2
            return 1
        fi
        sleep 10
    done
}

make_bucket() { # the bucket of the bundled store; elsewhere buckets are made by who owns them
    python -c '
import os, s3fs
bucket = os.environ["LAKE"].removeprefix("s3://").partition("/")[0]
store = s3fs.S3FileSystem()
store.exists(bucket) or store.mkdir(bucket)'
}

patiently airflow db migrate
airflow pools get upkeep >/dev/null 2>&1 || airflow pools set upkeep 2 "upkeep of lakes, which leaves slots for ingest"
case ${AWS_ENDPOINT_URL:-} in
http://store:*) patiently make_bucket ;;
esac
lake ls >/dev/null 2>&1 || lake init
