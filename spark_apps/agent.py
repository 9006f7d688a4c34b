"""One pack of an agent's work as a submitted application: the one that Airflow's `LakeConfig(submit=...)`
submits.

    spark-submit spark_apps/agent.py --lake URI --agent compact --pack packs/ID.00.json --outcome packs/ID.00.json

The agent's `find` wrote the pack.  The application writes the outcome to the lake too, under the name
`--outcome`.  There the task that submitted it finds the outcome, in whatever process it runs by then.  The
application succeeds if it could write the outcome, even if pieces failed: the task reads which ones, and fails.
So a failed application did not reach its end.  If it is killed and submitted again, it does nothing twice
(`spark_apps.packs`).

The driver opens the lake with its own credentials.  In client mode the task passes the options of its connection
(`OPTIONS`): a process of its own machine inherits them, and no command line shows them.
"""

from __future__ import annotations

import json
import os
import sys

from lake_core.errors import LakeError
from log_lake.agents.driver import agent_of
from log_lake.agents.packs import read_packs, write_outcome
from log_lake.console.logged import log_to_stderr, say_error
from log_lake.console.parser import Parser
from log_lake.lake import Lake
from spark_apps.packs import carry_out
from spark_apps.session import spark_session

OPTIONS = "LAKE_SECRET_OPTIONS"
"""The environment variable with the options of the lake's store, as JSON; Spark hides the values of such
names."""


def main(argv: list[str] | None = None) -> int:
    """Runs the submitted application; prints nothing to standard output."""
    parser = Parser(description="Carry out packs of an agent's work, on Spark.")
    parser.add_argument("--lake", required=True, metavar="URI")
    parser.add_argument("--agent", required=True, metavar="NAME", help="whose work it is")
    parser.add_argument("--pack", required=True, action="append", metavar="OBJECT", help="may be given again")
    parser.add_argument("--outcome", required=True, metavar="OBJECT", help="what to write the outcome to")
    parser.add_argument(
        "--metadata", default="{}", metavar="JSON", help="what the transactions say of their run"
    )
    args = parser.parse_args(argv)
    log_to_stderr("lake_core", "log_lake", "spark_apps")
    try:
        options = json.loads(os.environ.get(OPTIONS) or "{}")
        lake = Lake.open(args.lake, options=options, metadata=json.loads(args.metadata))
        decoded = agent_of(args.agent).decoded_work
        all_work = [decoded(work) for pack in read_packs(lake, args.pack) for work in pack]
        with spark_session(f"lake {args.agent}"):  # YARN fails an application that opens none
            outcome = carry_out(args.agent, all_work, open_lake=lambda name: lake, open_spark=spark_session)
        write_outcome(lake, args.outcome, outcome.values)
    except LakeError as error:
        say_error(args.agent, error)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
