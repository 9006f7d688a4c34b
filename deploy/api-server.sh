#!/bin/sh
# Airflow's API server, with one user: admin, whose password is in AIRFLOW_PASSWORD.
set -eu
umask 077
python -c 'import json, os; print(json.dumps({"admin": os.environ["AIRFLOW_PASSWORD"]}))' >"$AIRFLOW_HOME/passwords.json"
unset AIRFLOW_PASSWORD
exec airflow api-server
