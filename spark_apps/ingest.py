"""`lake load` as a submitted application: files loaded into a pool by Spark tasks, as one transaction.

    spark-submit spark_apps/ingest.py --lake URI --pool POOL [--token T] FILE...

It refuses bad files, as `lake load` does; the ingest agent parks them.
"""

from __future__ import annotations

import sys

import msgspec

from lake_core.errors import LakeError
from lake_core.store import address_of
from log_lake.console.logged import say_error
from log_lake.console.parser import Parser
from log_lake.console.read_options import add_read_options, read_options
from log_lake.console.sink import print_text
from log_lake.lake import Lake
from log_lake.loading.sources import files_to_read
from spark_apps.load import load_files
from spark_apps.session import spark_session


def main(argv: list[str] | None = None) -> int:
    """Runs the submitted application: prints a JSON line, and returns the exit status that `lake load` has."""
    parser = Parser(description="Load files into a pool, on Spark.")
    parser.add_argument("--lake", required=True, metavar="URI")
    parser.add_argument("--pool", required=True)
    parser.add_argument("--branch", default="main")
    add_read_options(parser)
    parser.add_argument("--token", default="", help="load once under this token, however often it runs")
    parser.add_argument("--message", default="")
    parser.add_argument(
        "--bulk", action="store_true", help="sort by ranges of keys, so that no two new objects share a key"
    )
    parser.add_argument(
        "--ranges", type=int, metavar="N", help="with --bulk: split an empty pool into so many ranges"
    )
    parser.add_argument("--remote", default=None, metavar="sc://HOST:PORT", help="a Spark Connect server")
    parser.add_argument("files", nargs="+", metavar="FILE")
    args = parser.parse_args(argv)
    try:
        lake = Lake.open(args.lake)
        pool = lake.pool(args.pool)
        pool.branch(args.branch)
        options = read_options(args)
        files = files_to_read(args.files, pool.config.settings, options, access=address_of(pool.store))
        with spark_session("lake ingest", remote=args.remote) as spark:
            result = load_files(
                spark,
                lake,
                pool_name=args.pool,
                files=files,
                branch=args.branch,
                format=args.format,
                options=options,
                token=args.token,
                message=args.message,
                consume=False,
                bulk=args.bulk,
                ranges=args.ranges,
            )
        print_text(msgspec.json.encode(vars(result)).decode() + "\n")
    except LakeError as error:
        say_error("ingest", error)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
