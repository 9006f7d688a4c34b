"""lake publish: a branch as an Iceberg table; or how far the published table is behind."""

from __future__ import annotations

from argparse import Namespace

from lake_core.errors import InvalidInput, NotFound
from lake_core.naming import MAIN
from log_lake.agents.compact.publication import publish as publish_pool
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, say
from log_lake.lake.pool import Pool
from log_lake.publish.lag import publication
from log_lake.publish.place import place_of
from log_lake.publish.report import lag_line, lag_values, result_line
from log_lake.texts.nametext import names_of


def publish(args: Namespace) -> None:
    """Publish, or say the lag."""
    name, _, branch = args.pool.partition("@")
    branch = branch or MAIN
    pool = open_lake(args).pool(name)
    if args.status:
        if args.without is not None:
            raise InvalidInput("publish --status: it takes no --without, because it changes nothing")
        _print_status(args, pool, branch)
        return
    without = args.without and names_of(args.without, option="--without")  # "" takes back what was left out
    done = publish_pool(pool, branch=branch, to=args.to, without=without)
    if args.json:
        print_json(vars(done))
    else:
        say(result_line(done))


def _print_status(args: Namespace, pool: Pool, branch: str) -> None:
    lag = publication(pool, branch=branch, to=args.to)
    if lag is None:
        location = place_of(pool, branch=branch, to=args.to).location
        raise NotFound(
            f"pool {pool.name!r}: branch {branch!r} is not published at {location}; run lake publish"
        )
    if args.json:
        print_json({"pool": pool.name, "branch": branch, **lag_values(lag)})
    else:
        say(f"{pool.name}: {lag_line(lag)}")
