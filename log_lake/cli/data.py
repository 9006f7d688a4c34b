"""Commands about records: load, scan, get, query."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from lake_core.errors import InvalidInput, NotFound
from lake_core.keys import KeyRange
from lake_core.phrases import choices, counted, human_size, printable
from lake_core.schemas.hidden import ROW
from lake_core.store import address_of
from lake_core.values.types import show_type
from log_lake.cli.opening import open_lake
from log_lake.cli.transacting import branch_to_write, revision_to_read
from log_lake.columns.json_text import json_lines
from log_lake.console.output import (
    BINARY,
    ENDINGS,
    VALUES,
    format_of_output,
    json_of,
    print_json,
    print_rows,
    print_table,
    say,
    write_records,
)
from log_lake.console.progress import shown_progress
from log_lake.console.read_options import read_options
from log_lake.lake import Lake
from log_lake.lake.results import LoadResult
from log_lake.lake.view import FAIL, View
from log_lake.loading.preview import Preview
from log_lake.reading.plan import ScanPlan, overlap_depth
from log_lake.reading.scan import result_schema
from log_lake.texts.keytext import RangeText, show_key
from log_lake.texts.rangelines import ranges_of_lines

if TYPE_CHECKING:
    from log_lake.sql_writes import StatementResult


def load(args: Namespace) -> None:
    """Load files; with --dry-run, show the result without committing."""
    from log_lake.loading.sources import files_to_read  # loads slowly

    lake = open_lake(args)
    pool, options = lake.pool(args.pool), read_options(args)
    files = files_to_read(args.files, pool.config.settings, options, access=address_of(pool.store))
    names = [f.uri for f in files]
    branch = branch_to_write(lake, args, dry_run=args.dry_run)
    with shown_progress(files, "reading" if args.dry_run else "loading") as progress:
        if args.dry_run:
            preview = branch.preview(names, format=args.format, options=options, progress=progress)
        else:
            result = branch.load(
                names,
                format=args.format,
                options=options,
                token=args.token or "",
                message=args.message,
                progress=progress,
                bulk=args.bulk,
            )
    if args.dry_run:
        report_preview(preview, pool_name=args.pool, as_json=args.json)
        if preview.fails:
            why = f": {preview.why}" if preview.why else ""
            raise InvalidInput(f"{_summary(preview, args.pool)}; the load would fail{why}")
    else:
        report_load(result, pool_name=args.pool, as_json=args.json)


def report_preview(preview: Preview, *, pool_name: str, as_json: bool) -> None:
    """Print the result of a dry run, for people or for programs."""
    fields = {field.name: show_type(field) for field in preview.schema}
    if as_json:
        print_json(
            {
                "fields": fields,
                "records": preview.records,
                "nokey": preview.nokey,
                "rejected": preview.bad,
                "would_fail": preview.fails,
                "why": preview.why,
                "sample": [msgspec.Raw(line.encode()) for line in json_lines(preview.sample).to_pylist()],
                "first_rejected": [
                    {"file": r.file, "line": r.line, "reason": r.reason, "raw": r.raw}
                    for r in preview.rejected
                ],
                "notes": list(preview.notes),
                "changes": list(preview.changes),
            }
        )
        return
    tell = _print if preview.fails else say  # what fails says one line on standard error, the reason
    for note in (*preview.notes, *preview.changes):
        tell(note)
    print_table(
        [{"field": name, "type": text} for name, text in fields.items()], empty="no record has the key"
    )
    if preview.sample.num_rows:
        write_records([preview.sample], preview.sample.schema, format="table", path=None)
    for rejected in preview.rejected:
        tell(f"{rejected.file}, line {rejected.line}: {rejected.reason}")
    if preview.bad > len(preview.rejected):
        tell(f"and {preview.bad - len(preview.rejected):,} more that cannot be read")
    if not preview.fails:
        say(f"{_summary(preview, pool_name)}; nothing was committed")


def _print(message: str) -> None:
    print(printable(message))


def _summary(preview: Preview, pool_name: str) -> str:
    line = f"{pool_name}: dry run: {counted(preview.records, 'record')}"
    if preview.nokey:
        line += f", {preview.nokey:,} without the key"
    if preview.bad:
        line += f", {preview.bad:,} that cannot be read"
    return line


def report_load(result: LoadResult, *, pool_name: str, as_json: bool, verb: str = "loaded") -> None:
    """Print the result of a load or a replace, for people or for programs.

    `verb`: the word for what was done, such as "loaded" or "replaced".
    """
    if as_json:
        left_out = ("removed", "removed_is_exact") if result.removed is None else ()
        print_json({name: value for name, value in vars(result).items() if name not in left_out})
        return
    for note in result.notes:  # a warning says which types changed
        say(note)
    if result.version is None:
        say(f"{pool_name}: nothing to load; nothing was committed")
        return
    if result.repeated:
        say(
            f"{pool_name}: nothing was written: the token was used in version {result.version}, transaction "
            f"{result.transaction_id}, "
            f"which {verb} {counted(result.records, 'record')}"
        )
        return
    line = (
        f"{pool_name}: {verb} {counted(result.records, 'record')} in {counted(result.objects, 'object')}"
        f" ({human_size(result.size)})"
    )
    if result.nokey:
        line += f", {result.nokey:,} without the key in {pool_name}.$nokey"
    if result.rejected:
        line += f", {result.rejected:,} rejected in {pool_name}.$rejected"
    say(f"{line}; version {result.version}, transaction {result.transaction_id}")


def span_of(view: View, args: Namespace) -> KeyRange:
    """Returns the key range of --from and --to, or of --key."""
    return range_text(args).read(view.key, view.key_classes)


def range_text(args: Namespace) -> RangeText:
    """Returns the key range of --from and --to, or of --key, as it was written."""
    prefix = getattr(args, "key", None)
    return RangeText(prefix=prefix) if prefix is not None else RangeText(low=args.from_, high=args.to)


def scan(args: Namespace) -> None:
    """Print the records of a key range, or of a list of ranges, in key order."""
    format = _format(args)
    if args.ranges is not None and (args.from_ is not None or args.to is not None):
        raise InvalidInput("--ranges says which keys; leave out --from and --to")
    unread = {"--limit": args.limit, "--format": args.format, "--output": args.output}
    if args.explain and (given := [name for name, value in unread.items() if value is not None]):
        raise InvalidInput(f"--explain prints no records; leave out {given[0]}")
    with _opened(args) as view:
        plan = view.plan(
            key_range=span_of(view, args),
            ranges=None if args.ranges is None else _ranges(args.ranges, view),
            columns=args.columns,
            where=args.where,
            keep=ROW.names if format in VALUES and args.columns is None else (),
        )
        if args.explain:
            explain_scan(view, plan, jobs=args.jobs, as_json=args.json)
            return
        tables = view.run(plan, limit=args.limit, jobs=args.jobs)
        write_records(tables, result_schema(plan), format=format, path=args.output)


def explain_scan(view: View, plan: ScanPlan, *, jobs: int, as_json: bool) -> None:
    """Print the parts of a scan by key: the bounds of each, and what it opens, merges and hides."""

    def bound(key: bytes | None) -> object:
        shown = show_key(key, view.key) if key else None
        return json_of(shown) if isinstance(shown, list) and not as_json else shown

    rows = [
        {
            "low": bound(part.key_range.low),
            "high": bound(part.key_range.high),
            "objects": len(part.references),
            "records": part.records,
            "size": sum(r.size for r in part.references),
            "depth": overlap_depth(part.references),
            "deletes": len(part.tombstones),
        }
        for part in (view.parts(plan, jobs) if jobs > 1 else plan.parts([]))
    ]
    print_rows(rows, as_json=as_json, empty="no object is read")
    left = plan.left_out
    if plan.where is None or not (left.by_statistics or left.by_cluster or left.answers):
        return
    groups = sum(map(len, plan.groups.values()))
    silent = {answer: count for answer, count in (left.answers or {}).items() if answer.is_silent}
    if as_json:
        told = {answer.name.lower(): count for answer, count in silent.items()}
        by = {"statistics": left.by_statistics, "index": left.by_index, "cluster": left.by_cluster}
        only = {"row_groups": groups, "objects": len(plan.groups)}
        print_json({"left_out": by, "not_used": told, **({"only": only} if groups else {})})
        return
    by_cluster = f", {left.by_cluster:,} by cluster" if left.by_cluster else ""
    say(f"left out: {left.by_statistics:,} objects by statistics, {left.by_index:,} by indexes{by_cluster}")
    if plan.groups:
        say(f"read: only {counted(groups, 'row group')} of {counted(len(plan.groups), 'object')}, by indexes")
    for answer, count in sorted(silent.items(), key=lambda one: one[0].name):
        say(f"{counted(count, 'object')} read, as {answer.value}: lake index make {view.config.name}")


def _ranges(path: str, view: View) -> list[KeyRange]:
    """Reads the ranges of keys from a file; `-` is standard input."""
    name = "standard input" if path == "-" else path
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as file:
            lines = (line.decode("utf-8-sig") for line in file)
            return ranges_of_lines(lines, view.key, view.key_classes, name=name)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InvalidInput(f"--ranges {path}: {why}; name a file with a range a line") from error


def _opened(args: Namespace) -> AbstractContextManager[View]:
    """Opens the revision to read.  With `--lease`, a lease keeps every vacuum from its objects meanwhile."""
    lake = open_lake(args)
    pool, at = lake.pool(args.pool), _revision(lake, args)
    if args.lease:
        return pool.leased(at, why="lake scan", on_missing=args.on_missing)
    return nullcontext(pool.at(at, on_missing=args.on_missing))


def _revision(lake: Lake, args: Namespace) -> str:
    """Returns the revision that `--at` names, or what the transaction of `--in` reads."""
    at: str = args.at if args.in_ is None else revision_to_read(lake, args.pool, args.in_)
    return at


def get(args: Namespace) -> None:
    """Print the records of one key."""
    lake = open_lake(args)
    view = lake.pool(args.pool).at(_revision(lake, args), on_missing=args.on_missing)
    format = _format(args)
    plan = view.plan(key_range=span_of(view, args), keep=ROW.names if format in VALUES else ())
    tables = list(view.run(plan))
    if not tables:
        raise NotFound(
            f"pool {args.pool!r}: no record with key {args.key}; lake head {args.pool} shows the first ones"
        )
    write_records(tables, result_schema(plan), format=format, path=None)


def sql(args: Namespace) -> None:
    """Print the result of a SELECT over pools, or run a statement that changes a pool."""
    from log_lake.sql_writes import is_write  # SQL doubles the start of every other command

    if is_write(args.sql):
        _change(args)
        return
    if given := [name for name in ("token", "message", "dry_run") if getattr(args, name)]:
        option = given[0].replace("_", "-")
        raise InvalidInput(f"--{option} is for a statement that changes a pool; this one only reads")
    from log_lake.system_tables import query

    reader = query(
        open_lake(args),
        args.sql,
        on_missing=args.on_missing,
        lease=args.lease,
        files=args.files,
        time=args.at or "",
        transaction=args.in_ or "",
    )
    tables = (pa.Table.from_batches([batch]) for batch in reader)
    write_records(tables, reader.schema, format=_format(args), path=args.output)


def _change(args: Namespace) -> None:
    """Runs a SQL statement that changes a pool, or creates one, and prints what it did."""
    from log_lake.sql_writes import execute

    unread = {
        "output": args.output,
        "format": args.format,
        "lease": args.lease,
        "on-missing": args.on_missing != FAIL,
        "at": args.at,
    }
    if given := [name for name, value in unread.items() if value]:
        raise InvalidInput(f"--{given[0]} is for a statement that reads; this one changes a pool")
    done = execute(
        open_lake(args),
        args.sql,
        token=args.token or "",
        message=args.message,
        dry_run=args.dry_run,
        files=args.files,
        transaction=args.in_ or "",
    )
    if args.json:
        print_json(asdict(done))
    else:
        say(f"{done.pool}: {_changed(done, token=args.token, dry_run=args.dry_run)}")
        if done.new_fields:
            verb = "would be" if args.dry_run else "are"
            say(f"{done.pool}: fields that {verb} new to the pool: {', '.join(done.new_fields)}")


def _changed(done: StatementResult, *, token: str, dry_run: bool) -> str:
    most = "" if done.is_exact else "at most "
    met = "records" if done.records is None else f"{most}{counted(done.records, 'record')}"
    if done.merged is not None:
        each = done.merged
        met += f" ({each.inserted:,} inserted, {each.updated:,} updated, {each.deleted:,} deleted)"
    if dry_run:
        return f"{met} would be {done.verb}; nothing was written"
    if done.repeated:
        return f"token {token!r} stands for version {done.version}; nothing was written now"
    if done.version is None:
        return f"nothing to do: no record was {done.verb}"
    return f"version {done.version}: {met} {done.verb}"


def _format(args: Namespace) -> str:
    """Returns the format, by option or by the file's name; otherwise a table on a terminal, JSON elsewhere."""
    output = getattr(args, "output", None)
    chosen = "json" if args.json else args.format
    if output is not None:
        return chosen or format_of_output(output) or _without_format(output)
    if chosen in BINARY and sys.stdout.isatty():
        raise InvalidInput(f"--format {chosen} is not for a terminal; add -o FILE")
    return chosen or ("table" if sys.stdout.isatty() else "json")


def _without_format(output: str) -> str:
    """Returns `json` for an output whose name has no ending, such as a pipe.  Raises InvalidInput for an unknown
    ending."""
    ending = os.path.splitext(output)[1]
    if ending:
        raise InvalidInput(
            f"-o {output}: the ending {ending} names no format; end it in {choices(list(ENDINGS))}, or add --format"
        )
    return "json"
