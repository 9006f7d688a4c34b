"""lake index: index rules of pools, which are settings, and the index objects of their data objects."""

from __future__ import annotations

import re
from argparse import Namespace

from lake_core.errors import Corrupt, InvalidInput, NotFound
from lake_core.keys.encoding import Value
from lake_core.naming import MAIN
from lake_core.phrases import counted, did_you_mean, human_size
from log_lake.cli.each_pool import EachPool
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_rows, say
from log_lake.indexes.rule import INDEX_PREFIX, IndexRule
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.indexing import make_indexes, rule_states
from log_lake.texts.value import show

_ARGUMENTS = {
    "create": "POOL FIELD",
    "drop": "POOL NAME",
    "ls": "[POOL]",
    "show": "POOL",
    "make": "POOL",
    "summary": "POOL FIELD",
}
"""What each action takes."""


def index(args: Namespace) -> None:
    """Do the action."""
    form = _ARGUMENTS[args.action]
    least, most = len(form.split()) - form.count("["), len(form.split())
    if not least <= len(args.names) <= most:
        raise InvalidInput(f"index {args.action}: it takes {form}; got {counted(len(args.names), 'name')}")
    if args.name is not None and args.action != "create":
        raise InvalidInput("index: --name belongs to create")
    if args.at != MAIN and args.action != "summary":
        raise InvalidInput("index: --at belongs to summary")
    {
        "create": _create,
        "drop": _drop,
        "ls": _ls,
        "show": _show,
        "make": _make,
        "summary": _summary,
    }[args.action](args)


def _create(args: Namespace) -> None:
    lake = open_lake(args)
    pool, field = args.names
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", field)[:64] if args.name is None else args.name
    rule = IndexRule(name, args.kind, field)
    old = lake.pool(pool).config.settings.get(rule.setting, "")
    if old and old != str(rule):
        raise InvalidInput(
            f"pool {pool!r} has an index {name!r} of {old}; give another --name, or drop it first"
        )
    version = lake.configure_pool(pool, {rule.setting: str(rule)})
    older = sum(state.missing for state in rule_states(lake.pool(pool)) if state.rule.digest == rule.digest)
    if args.json:
        print_json({"pool": pool, "name": name, "index": str(rule), "version": version, "missing": older})
        return
    rest = f"; {counted(older, 'object')} without it: lake index make {pool}" if older else ""
    say(f"index {name} of {pool}: new objects get {rule}{rest}")


def _drop(args: Namespace) -> None:
    lake = open_lake(args)
    pool, name = args.names
    rules = {rule.name: rule for rule in lake.pool(pool).settings.index_rules}
    if name not in rules:
        raise NotFound(f"pool {pool!r} has no index {name!r}; {did_you_mean(name, rules)}")
    version = lake.configure_pool(pool, {f"{INDEX_PREFIX}{name}": ""})
    if args.json:
        print_json({"pool": pool, "name": name, "version": version})
        return
    say(f"index {name} of {pool}: dropped; the agent retention, or lake vacuum, deletes its objects")


def _ls(args: Namespace) -> None:
    lake = open_lake(args)
    names = args.names or [pool.name for pool in lake.pools()]
    rows, each = [], EachPool()
    for name in names:
        with each.attempt(name):
            for rule in lake.pool(name).settings.index_rules:
                rows.append({"pool": name, "name": rule.name, "kind": rule.kind, "field": rule.field})
    print_rows(rows, as_json=args.json, empty="no indexes")
    each.check()


def _show(args: Namespace) -> None:
    pool = _pool(open_lake(args), args.names[0])
    rows = [
        {
            "name": state.rule.name,
            "index": str(state.rule),
            "objects": state.objects,
            "indexed": state.indexed,
            "missing": state.missing,
            "unfit": state.unfit,
            "size": state.size,
        }
        for state in rule_states(pool)
    ]
    print_rows(rows, as_json=args.json, empty="no indexes")


def _make(args: Namespace) -> None:
    name = args.names[0]
    indexes = make_indexes(_pool(open_lake(args), name), checks=lambda index: True)
    if args.json:
        print_json({"pool": name, "objects": indexes.objects, "size": indexes.size})
    else:
        say(f"{name}: made the indexes of {counted(indexes.objects, 'object')}, {human_size(indexes.size)}")
    if indexes.faults:
        raise Corrupt(f"{name}: {'; '.join(indexes.faults)}; lake fsck {name} says what else is damaged")


def _summary(args: Namespace) -> None:
    pool, field = args.names
    figures = open_lake(args).pool(pool).at(args.at).field_summary(field)
    quantiles = {f"q{share:g}": _shown(value) for share, value in figures.quantiles.items()}
    row = {
        "field": field,
        "version": figures.version,
        "records": figures.records,
        "nulls": figures.nulls,
        "low": _shown(figures.low),
        "high": _shown(figures.high),
        "distinct": figures.distinct,
        "distinct_error": round(figures.distinct_error, 4),
        **quantiles,
        "rank_error": round(figures.rank_error, 5),
    }
    if args.json:
        print_json({**row, "sketches": figures.sketches, "read": dict(figures.read)})
        return
    print_rows([{"figure": name, "value": value} for name, value in row.items()], as_json=False, empty="")
    objects = figures.sketches + len(figures.read)
    say(f"{counted(objects, 'object')}: {figures.sketches:,} by their sketches, {len(figures.read):,} read")
    for why, count in sorted(figures.reasons.items()):
        say(f"{counted(count, 'object')} read, as {why}")


def _shown(value: Value) -> str | None:
    return None if value is None else show(value)


def _pool(lake: Lake, name: str) -> Pool:
    pool = lake.pool(name)
    if pool.sub_pool:
        raise InvalidInput(f"pool {name!r}: a sub-pool has no indexes; name the pool")
    return pool
