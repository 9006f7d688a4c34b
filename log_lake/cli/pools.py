"""Commands about the lake and its pools: init, upgrade, create, ls, show, set, drop, restore, rename."""

from __future__ import annotations

import sys
import textwrap
from argparse import Namespace
from typing import Any

from lake_core.errors import InvalidInput, LakeError
from lake_core.ids import is_id
from lake_core.phrases import counted, human_size, human_time, printable
from lake_core.records.pools import PoolConfig
from lake_core.values.types import show_type
from log_lake.cli.deletion import drop_range
from log_lake.cli.each_pool import EachPool
from log_lake.cli.opening import open_lake
from log_lake.combine.declared import parse_aggregates
from log_lake.console.output import json_of, print_json, print_rows, print_table, say, terminal_width
from log_lake.console.sink import print_text
from log_lake.derived.standing import standing_of
from log_lake.lake import Lake
from log_lake.lake.counting import records_seen
from log_lake.lake.pool import Pool
from log_lake.lake.rekey import rekey
from log_lake.lake.view import View
from log_lake.publish.lag import Lag, publication
from log_lake.publish.place import BESIDE
from log_lake.publish.report import lag_line, lag_values
from log_lake.reading.live import LiveCount, live_count
from log_lake.settings import Settings
from log_lake.settings.settings import KNOWN
from log_lake.texts.keytext import show_key
from log_lake.vacuum.reach import reach


def init(args: Namespace) -> None:
    """Make a lake."""
    lake = Lake.create(args.lake)
    if args.json:
        print_json({"lake": lake.store.uri, "id": lake.id})
    else:
        say(f"made the lake {lake.store.uri} ({lake.id})")


def upgrade(args: Namespace) -> None:
    """Raise the lake to the newest format version."""
    lake = open_lake(args)
    before, after = lake.upgrade()
    if args.json:
        print_json({"lake": lake.store.uri, "before": before, "after": after})
    elif before == after:
        say(f"the lake {lake.store.uri} has format version {after} already")
    else:
        say(f"the lake {lake.store.uri} has format version {after} now; it had {before}")


def create(args: Namespace) -> None:
    """Make a pool."""
    settings = parse_settings(args.set)
    if args.format is not None and settings.setdefault("format", args.format) != args.format:
        raise InvalidInput(
            f"--format {args.format} and --set format={settings['format']}: name one format, once"
        )
    settings.update({f"type.{k}": v for k, v in parse_settings(args.type).items()})
    pool = open_lake(args).create_pool(
        args.pool,
        key=args.key,
        kind=args.kind,
        settings=settings,
        aggregates=parse_aggregates(args.aggregate),
    )
    if args.json:
        print_json({"pool": pool.name, "id": pool.config.id, "key": str(pool.config.key)})
    else:
        say(f"made the pool {pool.name}, sorted by {pool.config.key}")


def rekey_(args: Namespace) -> None:
    """Make a pool with another key from the records of a pool."""
    done = rekey(open_lake(args), args.pool, args.new, key=args.key, kind=args.kind, at=args.at)
    result = done.result
    if args.json:
        print_json({"pool": done.pool.name, "id": done.pool.config.id, "of": done.version, **vars(result)})
        return
    nokey = f" ({result.nokey:,} without the key)" if result.nokey else ""
    say(
        f"made the pool {done.pool.name}, sorted by {done.pool.config.key}: "
        f"{counted(result.records, 'record')}{nokey} of {args.pool}@{done.version}"
    )


def clone(args: Namespace) -> None:
    """Make a pool that begins with the records of another one, without copying its objects."""
    lake = open_lake(args)
    to = None if args.to is None else Lake.open(args.to, metadata=lake.context.metadata)
    pool = lake.clone(args.pool, args.new, at=args.at, to=to)
    origin, view = pool.config.clone, pool.at()
    if origin is None:
        if args.json:
            print_json(
                {"pool": pool.name, "id": pool.config.id, "lake": pool.store.uri, "version": view.version}
            )
        else:
            live = records_seen(view)
            say(
                f"made the pool {pool.name} in {pool.store.uri}: {live.text} records of {args.pool}@{view.version}"
            )
        return
    if args.json:
        of = {"of": origin.source, "version": origin.version, "branch": origin.branch}
        print_json({"pool": pool.name, "id": pool.config.id, **of})
        return
    live = records_seen(view)
    say(f"made the pool {pool.name}, a clone of {origin.text}: {live.text} records; no object was copied")


def parse_settings(words: list[str]) -> dict[str, str]:
    """Returns the settings that the words `K=V ...` give, by name.  Raises InvalidInput."""
    settings = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InvalidInput(f"{word!r}: write NAME=VALUE")
        settings[name] = value
    return settings


def ls(args: Namespace) -> None:
    """List the pools, or the dropped ones."""
    lake = open_lake(args)
    if args.dropped:
        _print_dropped(args, lake)
        return
    each = EachPool()
    rows: list[dict[str, Any]] = []
    for pool in lake.pools():
        with each.attempt(pool.name):
            rows += _rows(lake, pool)
        if pool.name in each.failures:
            rows.append(_row(pool.name, str(pool.key), pool.kind, error=each.failures[pool.name]))
    if args.json:
        for row in rows:
            print_json(row)
    else:
        print_table(
            _shown(rows, failed=bool(each.failures)),
            empty="no pools yet; make one with: lake create POOL --key FIELD",
            right=("size", "records"),
            whole=("pool",),
        )
    each.check()


def _rows(lake: Lake, config: PoolConfig) -> list[dict[str, Any]]:
    """Returns one row for the pool, and one for each of its sub-pools."""
    view = lake.pool(config.name).at()
    rows = [_row(config.name, str(view.key), config.kind, view=view)]
    for sub_pool in view.state.branches[view.branch].snapshot.sub_pools():
        name = f"{config.name}.{sub_pool}"
        part = lake.pool(name).at()
        rows.append(_row(name, str(part.key), config.kind, view=part))
    return rows


def _shown(rows: list[dict[str, Any]], *, failed: bool) -> list[dict[str, Any]]:
    """Returns the rows for people: `stored` only if objects hold records that readers do not see."""
    left_out = {"is_exact", *(() if failed else ("error",))}
    if all(row["stored"] == row["records"] for row in rows):
        left_out.add("stored")
    shown = []
    for row in rows:
        size, records = row["size"], row["records"]
        if records is not None:
            records = LiveCount(records, row["is_exact"], row["stored"]).text
        texts = {**row, "size": None if size is None else human_size(size), "records": records}
        shown.append({name: value for name, value in texts.items() if name not in left_out})
    return shown


def _row(
    name: str, key: str, kind: str, *, view: View | None = None, error: LakeError | None = None
) -> dict[str, Any]:
    references = [] if view is None else view.references
    live = None if view is None else live_count(view)
    return {
        "pool": name,
        "key": key or "(arrival)",
        "kind": kind,
        "records": None if live is None else live.records,
        "is_exact": None if live is None else live.is_exact,
        "stored": None if live is None else live.stored,
        "objects": None if view is None else len({r.object for r in references}),
        "size": None if view is None else sum(r.size for r in references),
        "version": None if view is None else view.version,
        "error": None if error is None else str(error),
    }


def _print_dropped(args: Namespace, lake: Lake) -> None:
    rows = [
        {
            "pool": dropped.pool.name,
            "id": dropped.pool.id,
            "dropped": human_time(dropped.time / 1e6),
            "by": dropped.author,
            "until": None
            if dropped.is_deleted  # it cannot be restored any more
            else human_time(dropped.time / 1e6 + Settings(dropped.pool.settings)["vacuum.grace"]),
        }
        for dropped in lake.dropped_pools()
    ]
    print_rows(rows, as_json=args.json, empty="no dropped pools")


def show(args: Namespace) -> None:
    """Show one pool: layout, restorable versions, schema, settings."""
    lake = open_lake(args)
    pool = lake.pool(args.pool)
    view, derived = pool.at(args.at), standing_of(lake, pool)
    references, left, live = view.references, reach(pool), records_seen(view)
    lag = _published(pool, view)
    shown = {
        "pool": pool.name,
        "id": pool.config.id,
        "key": str(view.key) or "(arrival)",
        "kind": pool.config.kind,
        "clone_of": None if pool.config.clone is None else pool.config.clone.text,
        "derived": None if derived is None else vars(derived),
        "branch": view.branch,
        "version": view.version,
        "records": live.records,
        "is_exact": live.is_exact,
        "stored": live.stored,
        "objects": len({r.object for r in references}),
        "size": sum(r.size for r in references),
        "depth": view.depth,
        "low": show_key(min((r.low for r in references), default=None), view.key),
        "high": show_key(max((r.high for r in references), default=None), view.key),
        "oldest": left.oldest,
        "removed": {
            "objects": left.objects,
            "size": left.size,
            "until": None if left.first is None else human_time(left.first),
            "last": None if left.last is None else human_time(left.last),
        },
        "published": lag_values(lag)
        if isinstance(lag, Lag)
        else None
        if lag is None
        else {"error": str(lag)},
        "fields": {f.name: show_type(f) for f in view.schema},
        "settings": {name: pool.settings.text(name) for name in KNOWN}
        | {f"type.{name}": show_type(f) for name, f in pool.settings.declared.items()},
    }
    if args.json:
        print_json(shown)
        return
    names = ["pool", "id", "key", "kind", *(["clone_of"] if pool.config.clone else [])]
    if derived is not None:
        shown["derived"] = derived.line.removeprefix("derived ")
        names.append("derived")
    for name in (*names, "branch", "version", "records", "objects", "size", "depth"):
        value = shown[name]
        text = f"{value:,}" if isinstance(value, int) else str(value)
        if name == "records":
            text = live.text + (f"; objects hold {live.stored:,}" if live.stored != live.records else "")
        if name == "depth":
            name, text = "overlap", f"at most {counted(view.depth, 'object')} at one key"
        name = "clone of" if name == "clone_of" else name
        _line(f"{name:12} {human_size(value) if name == 'size' and isinstance(value, int) else text}")
    if references:
        _line(f"{'range':12} {json_of(shown['low'])} to {json_of(shown['high'])}")
    for sub_pool in view.state.branches[view.branch].snapshot.sub_pools():
        if not view.sub_pool:
            beside = sum(
                r.records for r in view.state.branches[view.branch].snapshot.overlapping(sub_pool=sub_pool)
            )
            _line(f"{'beside it':12} {counted(beside, 'record')} in {pool.name}.{sub_pool}")
    _line(f"{'complete':12} since version {left.oldest:,}")
    if left.first is not None and left.last is not None:
        removed = f"{counted(left.objects, 'object')}, {human_size(left.size)}"
        _line(f"{'removed':12} {removed}; can come back until {human_time(left.first)}")
        if left.last != left.first:
            _line(f"{'':12} the last until {human_time(left.last)}")
    if lag is not None:
        _line(f"{'published':12} {lag_line(lag) if isinstance(lag, Lag) else lag}")
    _print_part("fields", [(f.name, show_type(f), "") for f in view.schema])
    settings = [(name, pool.settings.text(name), setting.meaning) for name, setting in KNOWN.items()]
    chosen = [row for row in settings if args.all or row[1] != KNOWN[row[0]].default]
    _print_part("settings", chosen)
    if left_out := len(settings) - len(chosen):
        _line(
            f"{counted(left_out, 'setting has its default', 'settings have their defaults')} (--all shows them)"
        )
    _print_part("declared", [(f.name, show_type(f), "") for f in pool.settings.declared.values()])


def _published(pool: Pool, view: View) -> Lag | LakeError | None:
    """Returns the lag of the Iceberg table of the view's branch; None if there is no table.

    It looks where the setting `publish.iceberg` says, or beside the pool's objects.  If the table cannot be
    read, it returns the error, so that everything else is still shown.
    """
    try:
        return publication(pool, branch=view.branch, to=pool.settings["publish.iceberg"] or BESIDE)
    except LakeError as error:
        return error


def _print_part(heading: str, rows: list[tuple[str, str, str]]) -> None:
    if not rows:
        return
    rows = [(printable(name), printable(value), meaning) for name, value, meaning in rows]
    _line(heading)
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    margin = widths[0] + widths[1] + 6
    total = terminal_width(sys.stdout)
    for name, value, meaning in rows:
        room = max(20, total - margin) if total else sys.maxsize
        first, *more = textwrap.wrap(meaning, room) or [""]
        _line(f"  {name:{widths[0]}}  {value:{widths[1]}}  {first}".rstrip())
        for line in more:
            _line(" " * margin + line)


def _line(text: str) -> None:
    print_text(printable(text) + "\n")


def set_(args: Namespace) -> None:
    """Change settings."""
    version = open_lake(args).configure_pool(args.pool, parse_settings(args.settings))
    _done(args, version, f"changed the settings of {args.pool}")


def drop(args: Namespace) -> None:
    """Remove a pool from the list; with a range, remove the records in it.

    The id of a folder that is not in the list of pools gives up that folder.
    """
    lake = open_lake(args)
    if args.branch is not None and args.from_ is None and args.to is None:
        raise InvalidInput(
            f"--branch {args.branch}: a whole pool is dropped, not a branch of it; lake branch {args.pool} -d "
            f"{args.branch} deletes a branch, and with --from or --to the records of a range are removed from one"
        )
    if args.from_ is not None or args.to is not None:
        confirm(
            args,
            f"remove the records of {args.pool} from {args.from_ or 'the first'} to {args.to or 'the last'}",
        )
        drop_range(args)
        return
    if is_id(args.pool) and args.pool not in {pool.name for pool in lake.pools()}:
        confirm(args, f"give up the folder {args.pool}, which the list of pools does not have")
        lake.give_up_folder(args.pool)
        if args.json:
            print_json({"folder": args.pool})
        else:
            say(f"gave up the folder {args.pool}; its objects stay on the store")
        return
    # with --yes a pool goes also when its history cannot be read
    confirm(args, f"remove the pool {args.pool}{'' if args.yes else _in_it(lake, args.pool)}")
    version = lake.drop_pool(args.pool)
    _done(args, version, f"removed the pool {args.pool}; lake restore {args.pool} takes it back")


def _records_text(pool: Pool) -> str:
    live = records_seen(pool.at())
    return f"{live.text} {'record' if live.records == 1 else 'records'}"


def _in_it(lake: Lake, name: str) -> str:
    """What a drop concerns, in brackets."""
    clones = lake.clones_of(name)
    kept = f"; its objects stay for its clones: {', '.join(clones)}" if clones else ""
    return f" ({_records_text(lake.pool(name))}{kept})"


def restore(args: Namespace) -> None:
    """Take a dropped pool back."""
    pool = open_lake(args).restore_pool(args.pool, new_name=args.new)
    _done(args, pool.config.restored, f"restored the pool {pool.name} ({pool.config.id})")


def confirm(args: Namespace, question: str, *, flag: str = "yes") -> None:
    """Ask the user at the terminal, unless the flag is set; raises InvalidInput for any answer except yes."""
    if getattr(args, flag):
        return
    if not sys.stdin.isatty():
        raise InvalidInput(f"{args.command}: to {question}, add --{flag}")
    sys.stderr.write(f"{question[0].upper()}{question[1:]}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidInput(f"{args.command}: not confirmed; nothing was changed")


def rename(args: Namespace) -> None:
    """Give a pool another name."""
    version = open_lake(args).rename_pool(args.pool, args.new)
    _done(args, version, f"renamed the pool {args.pool} to {args.new}")


def _done(args: Namespace, version: int, message: str) -> None:
    if args.json:
        print_json({"version": version})
    else:
        say(message)
