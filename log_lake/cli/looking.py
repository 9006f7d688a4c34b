"""Commands for a look around: head, describe, du."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from typing import Any

from lake_core.ids import home_of
from lake_core.naming import pool_journal
from lake_core.phrases import counted, human_size
from log_lake.cli.each_pool import EachPool
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_table, say, write_records
from log_lake.lake import Lake
from log_lake.reading.scan import result_schema
from log_lake.system_tables.description import Description, FieldDescription, describe_fields
from log_lake.vacuum.reach import reach

_BARS = "▁▂▃▄▅▆▇█"


def head(args: Namespace) -> None:
    """Print the first records of a pool, as a table unless the user asks for another format."""
    view = open_lake(args).pool(args.pool).at(args.at)
    plan = view.plan()
    format = "json" if args.json else args.format or "table"
    write_records(view.run(plan, limit=args.limit), result_schema(plan), format=format, path=None)


def describe(args: Namespace) -> None:
    """Print a summary of the records, with one line for each field."""
    description = describe_fields(open_lake(args).pool(args.pool).at(args.at), limit=args.limit)
    if args.json:
        for one in description.fields:
            print_json({**asdict(one), "records": description.records, "is_all": description.is_all})
        return
    print_table(
        [_shown(one) for one in description.fields],
        empty=f"{args.pool}: no fields yet",
        right=("distinct",),
        whole=("field",),
    )
    say(f"{args.pool}: {_read(description)}; numbers of distinct values are estimates")


def _read(description: Description) -> str:
    """Returns the records that were read: `140 records`, `the first 100 records`, `the first record`."""
    records = counted(description.records, "record")
    if description.is_all:
        return records
    return "the first record" if description.records == 1 else f"the first {records}"


def _shown(one: FieldDescription) -> dict[str, Any]:
    return {
        "field": one.field,
        "type": one.type,
        "nulls": one.nulls,
        "distinct": None if one.distinct is None else f"{one.distinct:,}",
        "least": one.least,
        "greatest": one.greatest,
        "values": bars(one.histogram) or ", ".join(one.frequent),
    }


def bars(counts: tuple[int, ...]) -> str:
    """Returns a histogram as text: one letter per count, blank for 0; the highest bar fills its letter."""
    most = max(counts, default=0)
    return "".join(_BARS[-(-count * len(_BARS) // most) - 1] if count else " " for count in counts)


def du(args: Namespace) -> None:
    """Print the bytes of each pool on the store; this costs one listing per pool."""
    lake = open_lake(args)
    each, rows = EachPool(), list[dict[str, Any]]()
    for name in args.pools or [pool.name for pool in lake.pools()]:
        with each.attempt(name):
            rows.append(_sizes(lake, name))
    if args.json:
        for row in rows:
            print_json(row)
    elif rows or not each.failures:
        shown = [{k: v if k == "pool" else human_size(v) for k, v in row.items()} for row in rows]
        print_table(
            shown,
            empty="no pools yet; make one with: lake create POOL --key FIELD",
            right=_SIZES,
            whole=("pool",),
        )
    each.check()


_SIZES = ("current", "removed", "other", "journal", "total")


def _sizes(lake: Lake, name: str) -> dict[str, Any]:
    """Returns the bytes of a pool on the store: objects that `main` reads, removed objects that can be restored,
    the journal, everything else, and the total."""
    pool = lake.pool(name)
    # what a clone reads in other folders takes room there
    current = sum({r.object: r.size for r in pool.at().references if not home_of(r.object)}.values())
    removed = reach(pool).size
    journal, total = 0, 0
    for one in pool.store.list(f"{pool.config.id}/"):
        total += one.size
        journal += one.size if one.name.startswith(pool_journal(pool.config.id) + "/") else 0
    other = max(total - current - removed - journal, 0)
    return {
        "pool": name,
        "current": current,
        "removed": removed,
        "other": other,
        "journal": journal,
        "total": total,
    }
