"""`lake derive`: makes a derived pool, keeps derived pools now, or says how they stand."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from lake_core.errors import Incomplete, InvalidInput, LakeError
from lake_core.phrases import counted
from lake_core.records.pools import PoolConfig
from log_lake.cli.opening import open_lake
from log_lake.cli.pools import parse_settings
from log_lake.console.output import print_json, print_rows, say
from log_lake.derived.create import derive
from log_lake.derived.settings import own_policy
from log_lake.derived.standing import in_order, standing_of
from log_lake.derived.step import keep, keep_all
from log_lake.derived.writing import StepResult
from log_lake.lake import Lake


def derive_(args: Namespace) -> None:
    """Make a derived pool, or keep the ones that there are."""
    makes = args.source is not None or args.query is not None
    if makes and (args.run or args.pool is None or None in (args.source, args.query)):
        raise InvalidInput(
            "derive: give the name of the new pool, --from POOL and --query SQL; --run keeps pools that there are"
        )
    if not makes and (args.key or args.set):
        raise InvalidInput("derive: --key and --set are of a new pool; give --from and --query too")
    lake = open_lake(args)
    if makes:
        _make(lake, args)
    elif args.run or args.dry_run:
        _run(lake, args)
    else:
        _list(lake, args)


def _make(lake: Lake, args: Namespace) -> None:
    derived = derive(
        lake,
        args.pool,
        source=args.source,
        query=args.query,
        key=args.key,
        settings=parse_settings(args.set),
        dry_run=args.dry_run,
    )
    key = str(derived.config.key)
    if args.json:
        print_json({"pool": args.pool, "id": derived.config.id, "key": key, **_values(derived.step)})
    elif args.dry_run:
        say(f"{args.pool}: would be derived from {args.source}@{derived.step.upto:,}, sorted by {key}")
    else:
        say(
            f"made the pool {args.pool}, sorted by {key}: {counted(derived.step.records, 'record')} of "
            f"{args.source}@{derived.step.upto:,}"
        )


def _run(lake: Lake, args: Namespace) -> None:
    failed = []
    for config in _chosen(lake, args.pool):
        pool = lake.pool(config.name)
        try:
            steps = [keep(lake, pool, dry_run=True)] if args.dry_run else list(keep_all(lake, pool))
        except LakeError as error:
            if args.pool is not None:
                raise
            failed.append(f"{config.name}: {error}")
            continue
        if args.json:
            for step in steps:
                print_json(_values(step))
        else:
            say("\n".join(step.line for step in steps) or f"{config.name}: up to date")
    if failed:
        raise Incomplete(f"{counted(len(failed), 'derived pool')} not kept: {'; '.join(failed)}")


def _list(lake: Lake, args: Namespace) -> None:
    standings = (standing_of(lake, lake.pool(one.name)) for one in _chosen(lake, args.pool))
    rows = [
        {
            "pool": one.pool,
            "source": one.source,
            "version": one.version,
            "behind": one.behind,
            "fault": one.fault,
            "query": one.query,
        }
        for one in standings
        if one is not None
    ]
    print_rows(rows, as_json=args.json, empty="no pool is derived")


def _chosen(lake: Lake, name: str | None) -> Iterator[PoolConfig]:
    if name is None:
        yield from in_order(lake.pools())
        return
    config = lake.pool(name).config
    own_policy(config)
    yield config


def _values(step: StepResult) -> dict[str, object]:
    return {**vars(step)}
