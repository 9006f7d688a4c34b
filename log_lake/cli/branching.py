"""Commands about branches and tags: branch, merge, revert, undo, tag, tags."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from lake_core.errors import InvalidInput
from lake_core.history.create import branch_of
from lake_core.naming import MAIN
from lake_core.phrases import counted
from log_lake.cli.each_pool import EachPool
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_rows, say
from log_lake.lake.all_pools import delete_from_all, tag_all
from log_lake.lake.named import microseconds
from log_lake.lake.pool import Pool
from log_lake.lake.reverts import RevertResult
from log_lake.reading.live import LiveCount, live_counts
from log_lake.settings.setting_types import duration
from log_lake.system_tables.tables import branches_table, tags_table


def branch(args: Namespace) -> None:
    """List branches; create or restore one; delete one."""
    pool = open_lake(args).pool(args.pool)
    if args.delete is not None:
        if args.name is not None or args.at is not None:
            raise InvalidInput("branch -d NAME: it takes no second name, and no --at")
        done = pool.delete_branch(args.delete)
        unmerged = f"; {counted(done.unmerged, 'write')} of it were never merged" if done.unmerged else ""
        line = (
            f"{args.pool}: deleted branch {args.delete}{unmerged}; lake branch {args.pool} {args.delete} --at "
            f"{done.root} restores it"
        )
    elif args.name is None:
        if args.at is not None:
            raise InvalidInput("branch --at: name the branch to create")
        view = pool.at()
        rows = branches_table(view.state, live_counts(view)).to_pylist()
        print_rows(
            rows if args.json else list(map(_shown_branch, rows)), as_json=args.json, empty="no branches"
        )
        return
    else:
        done = pool.create_branch(args.name, at=MAIN if args.at is None else args.at)
        line = f"{args.pool}: created branch {args.name} on {done.parent} at version {done.at}"
    if args.json:
        print_json(vars(done))
    else:
        say(f"{line}; version {done.version}, transaction {done.transaction_id}")


def _shown_branch(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the row of a branch for people: the number of records that readers see becomes a text, such as `at
    most 27`."""
    text = LiveCount(row["records"], row["is_exact"], row["stored"]).text
    return {
        name: text if name == "records" else value
        for name, value in row.items()
        if name not in ("is_exact", "stored")
    }


def merge(args: Namespace) -> None:
    """Merge a branch into its parent."""
    pool = open_lake(args).pool(args.pool)
    fork = branch_of(pool.history.load_open().state, args.child).fork
    into = args.into or (fork.parent if fork is not None else MAIN)
    done = pool.branch(into).merge(args.child, message=args.message)
    if args.json:
        print_json(vars(done))
    elif done.version is None:
        say(f"{args.pool}: {args.child} has nothing new for {into}; nothing was committed")
    else:
        say(
            f"{args.pool}: merged {counted(done.writes, 'write')} of {args.child} into {into}; version "
            f"{done.version}, transaction {done.transaction_id}"
        )


def revert(args: Namespace) -> None:
    """Take back a transaction."""
    branch = open_lake(args).pool(args.pool).branch(args.branch)
    _report_revert(branch.revert(args.revision), args)


def undo(args: Namespace) -> None:
    """Take back maintenance."""
    branch = open_lake(args).pool(args.pool).branch(args.branch)
    _report_revert(branch.undo(args.revision), args)


def _report_revert(done: RevertResult, args: Namespace) -> None:
    if args.json:
        print_json(vars(done))
        return
    parts = [
        f"{counted(done.removed, 'object')} went" if done.removed else "",
        f"{counted(done.restored, 'object')} came back" if done.restored else "",
        f"records of {counted(done.hidden, 'compacted object')} are hidden" if done.hidden else "",
        f"{counted(done.deletes_removed, 'delete')} went" if done.deletes_removed else "",
        f"{counted(done.deletes_restored, 'delete')} came back" if done.deletes_restored else "",
    ]
    say(
        f"{args.pool}: took back version {done.reverted}: {', '.join(part for part in parts if part)}; version "
        f"{done.version}, transaction {done.transaction_id}"
        + (f"; {done.branch} holds {done.content}" if done.content else "")
    )


def tag(args: Namespace) -> None:
    """Set a tag, or delete one; of one pool or of all."""
    if args.all:
        _tag_all(args)
        return
    if args.pool is None:
        raise InvalidInput("tag: name a pool, or say --all")
    pool = open_lake(args).pool(args.pool)
    if (args.name is None) == (args.delete is None):
        raise InvalidInput("tag: name the tag to set, or the one to delete with -d NAME")
    if args.delete is not None:
        if args.at is not None or args.expires is not None or args.reason:
            raise InvalidInput("tag -d NAME: it takes no --at, --reason or --expires")
        done = pool.delete_tag(args.delete)
        line = f"deleted tag {args.delete} of version {done.tagged}"
    else:
        expires = None if args.expires is None else _expiry(args.expires, now=pool.context.now())
        done = pool.tag(
            args.name, at=MAIN if args.at is None else args.at, reason=args.reason, expires=expires
        )
        line = f"tag {args.name} names version {done.tagged} of {done.branch}"
    if args.json:
        print_json(vars(done))
    else:
        say(f"{args.pool}: {line}; version {done.version}, transaction {done.transaction_id}")


def _tag_all(args: Namespace) -> None:
    """Sets a tag on every pool, or deletes it there.  The first name on the command line, `args.pool`, is the
    tag's."""
    if args.name is not None or args.at is not None or (args.pool is None) == (args.delete is None):
        raise InvalidInput(
            "tag --all: name the tag to set, or the one to delete with -d NAME; no pool, no --at"
        )
    lake = open_lake(args)
    if args.delete is not None:
        if args.expires is not None or args.reason:
            raise InvalidInput("tag -d NAME: it takes no --at, --reason or --expires")
        done = delete_from_all(lake, args.delete)
        lines = [
            f"{pool}: deleted tag {done.tag} of version {one.tagged}" for pool, one in done.pools.items()
        ]
    else:
        expires = None if args.expires is None else _expiry(args.expires, now=lake.context.now())
        done = tag_all(lake, args.pool, reason=args.reason, expires=expires)
        lines = [f"{pool}: tag {done.tag} names version {one.tagged}" for pool, one in done.pools.items()]
        lines += [f"{pool}: has no transaction yet, so nothing is tagged" for pool in done.empty]
    if args.json:
        print_json(
            {
                "tag": done.tag,
                "pools": {pool: vars(one) for pool, one in done.pools.items()},
                "empty": done.empty,
                "failures": {pool: str(error) for pool, error in done.failures.items()},
            }
        )
    else:
        for line in lines:
            say(line)
    done.check()


def _expiry(text: str, *, now: float) -> float:
    """Returns a time, or a span from now on, in seconds since 1970."""
    try:
        return now + duration(text)
    except ValueError:
        return microseconds(text) / 1e6


def tags(args: Namespace) -> None:
    """Print the tags of a pool, or of all pools."""
    lake = open_lake(args)
    if args.pool:
        rows, each = _tags_of(lake.pool(args.pool), with_cost=args.cost), EachPool()
    else:
        rows, each = [], EachPool()
        for config in lake.pools():
            with each.attempt(config.name):
                rows += _tags_of(lake.pool(config.name), with_cost=args.cost)
    if rows or not each.failures:
        print_rows(rows, as_json=args.json, empty="no tags")
    each.check()


def _tags_of(pool: Pool, *, with_cost: bool) -> list[dict[str, Any]]:
    costs = pool.tag_costs() if with_cost else {}
    now = int(pool.context.now() * 1_000_000)
    rows = []
    for row in tags_table(pool.history.load_open().state).to_pylist():
        tag = pool.tags[row["name"]]
        shown = {"pool": pool.name, **row} | {
            "time": row["time"].isoformat().replace("+00:00", "Z"),
            "expires": row["expires"].isoformat().replace("+00:00", "Z") if row["expires"] else None,
            "expired": not tag.is_live(now),
        }
        rows.append(shown | ({"cost": costs.get(row["name"], 0)} if with_cost else {}))
    return rows
