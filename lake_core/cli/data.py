"""Commands about records: load, scan, get, query."""

from __future__ import annotations

import sys
from argparse import Namespace

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lake_core.cli.output import (
    format_of_output,
    print_json,
    say,
    write_records,
)
from lake_core.errors import InvalidInput, NotFound
from lake_core.ingest.sources import find_files
from lake_core.keys import KeyRange
from lake_core.keys.encoding import AFTER
from lake_core.lake import Lake
from lake_core.outcomes import LoadResult
from lake_core.scan.scan import result_schema
from lake_core.view import View
from lake_core.wording import counted, human_size


def load(args: Namespace) -> None:
    """Take in files."""
    branch = Lake.open(args.lake).pool(args.pool).branch(args.branch)
    files = [f.uri for f in find_files(args.files)]
    with _progress() as progress:
        task = progress.add_task("load", total=len(files), file="")
        started: list[str] = []

        def begin(file: str) -> None:
            progress.update(task, completed=len(started), file=file.rpartition("/")[2])
            started.append(file)

        result = branch.load(
            files, format=args.format, token=args.token, message=args.message, progress=begin
        )
        progress.update(task, completed=len(files), file="")
    report_load(result, pool=args.pool, as_json=args.json)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("files  {task.fields[file]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def report_load(result: LoadResult, *, pool: str, as_json: bool) -> None:
    """What a load did, for people or for programs."""
    if as_json:
        print_json(vars(result))
        return
    if result.transaction is None:
        say(f"{pool}: nothing to load; nothing was committed")
        return
    if result.repeated:
        say(
            f"{pool}: nothing was written: the token was used in transaction {result.transaction} {result.id}, "
            f"which loaded {counted(result.records, 'record')}"
        )
        return
    line = (
        f"{pool}: loaded {counted(result.records, 'record')} in {counted(result.objects, 'object')}"
        f" ({human_size(result.size)})"
    )
    if result.nokey:
        line += f", {result.nokey:,} without the key in {pool}.$nokey"
    if result.rejected:
        line += f", {result.rejected:,} rejected in {pool}.$rejected"
    say(f"{line}; transaction {result.transaction} {result.id}")


def span_of(view: View, args: Namespace) -> KeyRange:
    """The range that --from and --to, or --key, say."""
    if getattr(args, "key", None) is not None:
        prefix = view.bound_of_text(args.key)
        return KeyRange(prefix, prefix + AFTER)
    return KeyRange(
        b"" if args.from_ is None else view.bound_of_text(args.from_),
        None if args.to is None else view.bound_of_text(args.to),
    )


def scan(args: Namespace) -> None:
    """Records of a key range, in key order."""
    view = Lake.open(args.lake).pool(args.pool).at(args.at)
    plan = view.plan(span=span_of(view, args), columns=args.columns, where=args.where)
    write_records(
        view.run(plan, limit=args.limit), result_schema(plan), format=_format(args), path=args.output
    )


def get(args: Namespace) -> None:
    """The records of one key."""
    view = Lake.open(args.lake).pool(args.pool).at(args.at)
    found = view.to_table(span=span_of(view, args))
    if not found.num_rows:
        raise NotFound(f"pool {args.pool!r}: no record with key {args.key}")
    write_records([found], found.schema, format=_format(args), path=None)


def sql(args: Namespace) -> None:
    """SQL over pools."""
    from lake_core.query import query  # DuckDB and Arrow's data sets double the start of every other command

    reader = query(Lake.open(args.lake), args.sql)
    tables = (pa.Table.from_batches([batch]) for batch in reader)
    write_records(tables, reader.schema, format=_format(args), path=args.output)


def _format(args: Namespace) -> str:
    """The format asked for, by word or by the file's name; else a table on a terminal, JSON elsewhere."""
    output = getattr(args, "output", None)
    chosen = "json" if args.json else args.format
    if output is not None:
        return chosen or format_of_output(output)
    if chosen in ("parquet", "arrow") and sys.stdout.isatty():
        raise InvalidInput(f"--format {chosen} is not for a terminal; add -o FILE")
    return chosen or ("table" if sys.stdout.isatty() else "json")
