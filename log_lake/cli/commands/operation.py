"""Commands about history and damage; and the completion of a shell."""

from __future__ import annotations

from argparse import ArgumentParser

from log_lake.agents.roster import AGENTS
from log_lake.cli.arguments import count, duration, positive
from log_lake.cli.command import Command, Writes
from log_lake.cli.completion import SHELLS


def _jobs(parser: ArgumentParser) -> None:
    parser.add_argument("pool", nargs="?", metavar="POOL", help="default: all pools")
    parser.add_argument("--agent", choices=tuple(AGENTS), metavar="A", help="only jobs of this agent")
    parser.add_argument(
        "--state", choices=("running", "done", "failed", "died", "put off"), help="only jobs in this state"
    )
    parser.add_argument(
        "--limit", type=count, default=20, metavar="N", help="stop after this many (default: 20)"
    )


def _doctor(parser: ArgumentParser) -> None:
    parser.add_argument("pools", nargs="*", metavar="POOL", help="default: the whole lake")
    parser.add_argument(
        "--anew",
        action="store_true",
        help="look at every pool, also at those that were well when something was last written to them",
    )


def _coverage(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument(
        "--branch", default="main", metavar="B", help="a branch, tag or version (default: main)"
    )
    parser.add_argument(
        "--since",
        metavar="TIME",
        help="the first interval (default: intervals.since, or the first that is held)",
    )
    parser.add_argument(
        "--until", metavar="TIME", help="intervals that end by then, inclusive (default: now)"
    )
    parser.add_argument("--gaps", action="store_true", help="only intervals that the pool lacks")
    parser.add_argument(
        "--backfill", action="store_true", help="print the commands of Airflow that load exactly the gaps"
    )
    parser.add_argument(
        "--dag-id",
        default="lake_intervals",
        metavar="DAG",
        help="the DAG of --backfill (default: lake_intervals)",
    )


def _leases(parser: ArgumentParser) -> None:
    parser.add_argument("pool", nargs="?", metavar="POOL", help="default: all pools")


def _repair(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument(
        "--object", action="append", default=[], metavar="ID", help="a data object; repeatable"
    )
    parser.add_argument(
        "--transaction",
        action="append",
        default=[],
        metavar="N",
        help="a version or a transaction id; repeatable",
    )
    parser.add_argument("--branch", default="main", metavar="B", help="default: main")
    parser.add_argument(
        "--whole", action="store_true", help="take out objects in which no damage was seen, too; do not ask"
    )
    parser.add_argument("--reason", default="", metavar="TEXT", help="a text to keep with the repair")
    parser.add_argument("--dry-run", action="store_true", help="print what would be removed; change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask (required without a terminal)")


def _verify(parser: ArgumentParser) -> None:
    parser.add_argument("one", metavar="A", help="POOL or POOL@REVISION, as in SQL: logs, logs@7, logs@test")
    parser.add_argument("other", metavar="B", help="the same")
    parser.add_argument(
        "-j",
        "--jobs",
        type=positive,
        default=1,
        metavar="N",
        help="read so many parts of the keys at the same time (default: 1)",
    )


def _fsck(parser: ArgumentParser) -> None:
    parser.add_argument(
        "pools", nargs="*", metavar="POOL", help="pools, or lake:pools (default: everything in the lake)"
    )
    parser.add_argument("--data", action="store_true", help="read every record too, not only the footers")
    parser.add_argument(
        "--content",
        action="store_true",
        help="as --data, and compare what is read with the stored content sums",
    )
    parser.add_argument(
        "--older-than",
        type=duration,
        default=86_400.0,
        metavar="DURATION",
        help="report an object that nothing refers to only if it is older than this (default: 1d)",
    )


def _rebuild(parser: ArgumentParser) -> None:
    parser.add_argument(
        "pool", metavar="POOL", help="the name of the pool, or the id (its folder in the lake)"
    )
    parser.add_argument("--name", default="", metavar="NEW", help="the name of the pool that is made")
    parser.add_argument("--key", metavar="FIELD[:desc],...", help="the key, if the objects name several")
    parser.add_argument(
        "--kind",
        metavar="append|upsert|aggregate",
        help="the kind, if the list of pools does not have the pool",
    )
    parser.add_argument(
        "--aggregate", default="", metavar="FIELD=FN,...", help="for aggregate pools, as in lake create"
    )
    parser.add_argument(
        "--guess", action="store_true", help="order objects by their ids where nothing else tells their age"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be made and what is lost; change nothing"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask (required without a terminal)")


def _parked(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument(
        "--release", action="append", default=[], metavar="FILE", help="let the agent try this file again"
    )
    parser.add_argument("--release-all", action="store_true", help="let the agent try all of them again")
    parser.add_argument("--branch", default="main", metavar="B", help="default: main")


def _offsets(parser: ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="TOPIC[:PARTITION]=OFFSET",
        help="read on from this offset, or from earliest or latest; records that are loaded stay",
    )


def _completion(parser: ArgumentParser) -> None:
    parser.add_argument(
        "shell", choices=SHELLS, metavar="bash|zsh|fish", help='add: eval "$(lake completion bash)"'
    )


COMMANDS = (
    Command(
        name="doctor",
        help="say whether the lake is well, why not, and what to do; exit status 0 well, 1 attention, 2 ill",
        run="doctor.doctor",
        writes=Writes.NEVER,
        arguments=_doctor,
    ),
    Command(
        name="coverage",
        help="say which intervals a pool holds, lacks, or has late",
        run="coverage.coverage",
        writes=Writes.NEVER,
        arguments=_coverage,
    ),
    Command(
        name="jobs",
        help="list the jobs of the agents, newest first",
        run="jobs.jobs",
        writes=Writes.NEVER,
        arguments=_jobs,
    ),
    Command(
        name="leases",
        help="list the leases of a pool and the objects that they keep",
        run="vacuuming.leases",
        writes=Writes.NEVER,
        arguments=_leases,
    ),
    Command(
        name="repair",
        help="remove a bad transaction or a damaged object from a pool, so that the rest can be read",
        run="repairing.repair_pool",
        writes=Writes.UNLESS_DRY_RUN,
        arguments=_repair,
        keeps_metadata=True,
    ),
    Command(
        name="fsck",
        help="look for damage and leftovers; change nothing",
        run="checking.fsck",
        writes=Writes.NEVER,
        arguments=_fsck,
    ),
    Command(
        name="verify",
        help="say whether two pools or revisions hold the same records; the exit status is the answer",
        run="verifying.verify",
        writes=Writes.NEVER,
        arguments=_verify,
    ),
    Command(
        name="rebuild",
        help="rebuild a pool from its data objects; nothing is overwritten",
        run="checking.rebuild_pool",
        writes=Writes.UNLESS_DRY_RUN,
        arguments=_rebuild,
    ),
    Command(
        name="parked",
        help="list or release files that the ingest agent cannot load and skips",
        run="parked.parked",
        writes=Writes.BY_ARGUMENTS,
        arguments=_parked,
    ),
    Command(
        name="offsets",
        help="say where a pool goes on in its topics of Kafka, or set it",
        run="offsets.offsets",
        writes=Writes.BY_ARGUMENTS,
        arguments=_offsets,
    ),
    Command(
        name="completion",
        help="print the completion script of a shell",
        run="completion.completion",
        writes=Writes.NEVER,
        arguments=_completion,
    ),
)
