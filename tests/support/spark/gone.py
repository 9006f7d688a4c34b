"""Ingests files over Spark Connect, after it is told to continue. Its exit status is that of the applications.

    python -m tests.support.spark.gone LAKE POOL FILE...

Run by test_masters, which ends the server before that.
"""

from __future__ import annotations

import sys

from lake_core.errors import LakeError
from log_lake.lake import Lake
from log_lake.loading.sources import find_files
from spark_apps.load import load_files
from spark_apps.session import spark_session


def main(lake: str, pool: str, *files: str) -> int:
    try:
        with spark_session("gone", retries=4) as spark:  # the test need not wait for a minute
            assert spark.range(3).count() == 3
            print("connected", flush=True)
            sys.stdin.readline()
            load_files(spark, Lake.open(lake), pool_name=pool, files=find_files(list(files)))
    except LakeError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
