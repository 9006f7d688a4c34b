"""Commands that make records invisible: delete, replace, drop of a range."""

from __future__ import annotations

from argparse import Namespace

from lake_core.errors import InvalidInput
from lake_core.naming import MAIN
from lake_core.phrases import counted
from lake_core.store import address_of
from log_lake.cli.data import range_text, report_load
from log_lake.cli.opening import open_lake
from log_lake.cli.transacting import branch_to_write
from log_lake.console.output import print_json, say
from log_lake.console.progress import shown_progress
from log_lake.console.read_options import read_options
from log_lake.loading.sources import files_to_read


def delete(args: Namespace) -> None:
    """Delete records: one small transaction."""
    if args.key is not None and (args.from_ is not None or args.to is not None):
        raise InvalidInput("delete: give either --key, or --from and --to")
    if args.all == (any(given is not None for given in (args.key, args.from_, args.to, args.where))):
        raise InvalidInput(
            "delete: say which records: --key, --from, --to, --where; or --all and none of them"
        )
    done = branch_to_write(open_lake(args), args, to_delete=True).delete(
        key_range=range_text(args), where=args.where, reason=args.reason, token=args.token or "", count=True
    )
    if args.json:
        print_json(vars(done))
    elif done.version is None:
        say(f"{args.pool}: nothing to delete; nothing was committed")
    elif done.repeated:
        say(
            f"{args.pool}: nothing was written: the token was used in version {done.version}, transaction "
            f"{done.transaction_id}"
        )
    else:
        what = _records(done.records, is_exact=done.is_exact) or "all such records"
        say(
            f"{args.pool}: deleted {what}; {counted(done.covers, 'object')} may hold such records; "
            f"version {done.version}, transaction {done.transaction_id}"
        )


def replace(args: Namespace) -> None:
    """Replace the records of a range by those of files, in one transaction."""
    if args.from_ is None and args.to is None and args.where is None and not args.all:
        raise InvalidInput("replace: say which records: --from, --to, --where, or --all")
    lake = open_lake(args)
    pool, options = lake.pool(args.pool), read_options(args)
    files = files_to_read(args.files, pool.config.settings, options, access=address_of(pool.store))
    with shown_progress(files, "replacing") as progress:
        result = branch_to_write(lake, args).replace(
            [f.uri for f in files],
            key_range=range_text(args),
            where=args.where,
            format=args.format,
            options=options,
            token=args.token or "",
            message=args.message,
            progress=progress,
            count=True,
        )
    old = _records(result.removed, is_exact=result.removed_is_exact) or "the old records"
    report_load(result, pool_name=args.pool, as_json=args.json, verb=f"replaced {old} by")


def drop_range(args: Namespace) -> None:
    """Remove all records of a range, in one transaction: a replace that brings no new records."""
    pool = open_lake(args).pool(args.pool)
    done = pool.branch(args.branch or MAIN).replace([], key_range=range_text(args), count=True)
    if args.json:
        print_json(vars(done))
    else:
        what = _records(done.removed, is_exact=done.removed_is_exact) or "the records"
        say(
            f"{args.pool}: removed {what} of the range; version {done.version}, transaction "
            f"{done.transaction_id}"
        )


def _records(count: int | None, *, is_exact: bool) -> str:
    """`27 records`, `at most 27 records`; "" if the number is not known."""
    return "" if count is None else f"{'' if is_exact else 'at most '}{counted(count, 'record')}"
