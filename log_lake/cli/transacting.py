"""Commands about transactions over several pools: begin, commit, abort, transactions; and what `--in` names."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from lake_core.phrases import human_time
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_table, say
from log_lake.console.sink import print_text
from log_lake.lake import Lake
from log_lake.lake import open_transactions as opened
from log_lake.lake.branch import Branch
from log_lake.lake.open_transactions import TransactionRow


def begin(args: Namespace) -> None:
    """Begin a transaction.  Prints its id alone, so that a script can keep it in a variable."""
    lake = open_lake(args)
    tx = lake.transaction(token=args.token or "", message=args.message, open_for=args.open_for)
    if args.json:
        print_json({"id": tx.id})
    else:
        print_text(tx.id + "\n")


def commit(args: Namespace) -> None:
    """Commit a transaction, or print what its first commit did."""
    done = open_lake(args).transaction(args.id).commit()
    if args.json:
        print_json(vars(done))
        return
    versions = ", ".join(f"{pool} version {version}" for pool, version in sorted(done.versions.items()))
    if done.repeated:
        say(f"transaction {done.id}: nothing was written: its token was used in {versions}")
    elif versions:
        say(f"transaction {done.id}: committed; {versions}")
    else:
        say(f"transaction {done.id}: committed; nothing was written in it")


def abort(args: Namespace) -> None:
    """End a transaction without its writes."""
    open_lake(args).transaction(args.id).abort()
    if args.json:
        print_json({"id": args.id})
    else:
        say(f"transaction {args.id}: nothing of it is visible")


def transactions(args: Namespace) -> None:
    """List the transactions over pools that are open, or that have ended and are not cleaned up yet."""
    rows = opened.transactions(open_lake(args))
    if args.json:
        for row in rows:
            print_json(vars(row))
        return
    print_table(list(map(_shown, rows)), empty="no transactions over several pools", whole=("id",))


def _shown(row: TransactionRow) -> dict[str, Any]:
    """Returns the row of a transaction for people."""
    times = {"since": row.begun, "until": row.expires}
    return {
        "id": row.id,
        "state": row.state,
        "pools": ", ".join(row.pools),
        "author": row.author,
        **{name: None if time is None else human_time(time.timestamp()) for name, time in times.items()},
        "token": row.token,
        "message": row.message,
    }


def branch_to_write(lake: Lake, args: Namespace, *, to_delete: bool = False, dry_run: bool = False) -> Branch:
    """Returns the branch that `--branch` names, or the branch of the transaction that `--in` names; the
    transaction then joins the pool.

    In a dry run it joins no pool.  Raises NotFound, Conflict, InvalidInput.
    """
    if args.in_ is None:
        return lake.pool(args.pool).branch(args.branch, to_delete=to_delete)
    if dry_run:
        return lake.pool(args.pool).branch(revision_to_read(lake, args.pool, args.in_))
    return lake.transaction(args.in_).pool(args.pool)


def revision_to_read(lake: Lake, pool: str, id: str) -> str:
    """Returns the branch of a pool that a transaction reads.  Raises NotFound, Conflict."""
    transaction = lake.transaction(id)
    transaction.check_open()
    return transaction.revision(lake.pool(pool))
