"""`lake convert`: converts files of any format that the lake reads into one file of any format that it writes,
without a lake.

Values of ZNG, ZST and their text form are passed on unchanged.  Everything else is read as in a load and written
as in a scan: through records in the types that objects hold.  A format with one schema for all records (every
one but JSON) gets the united schema, so the files are read twice; only one block is in memory (decision 85).

Types that the target cannot hold are refused, or reported in one line.  The target appears when it is complete.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from lake_core.errors import Corrupt, InvalidInput
from lake_core.keys.spec import ARRIVAL
from lake_core.phrases import choices, counted, human_size, listed
from lake_core.schemas.schema import unite_schemas
from log_lake.columns.cast import cast_table
from log_lake.console.output import (
    BINARY,
    ENDINGS,
    format_of_output,
    print_json,
    say,
    write_to,
)
from log_lake.console.progress import shown_progress
from log_lake.console.read_options import read_options
from log_lake.console.sink import exists, sink
from log_lake.console.value_output import untyped, value_writer
from log_lake.loading.block import QUARANTINE, Reading, silent
from log_lake.loading.csv_options import csv_options
from log_lake.loading.detect import format_of
from log_lake.loading.expansion import Expansion
from log_lake.loading.files import FileSource
from log_lake.loading.formats.zng import UNITED, VALUE_FORMATS, read_values
from log_lake.loading.opening import STDIN, kept_streams
from log_lake.loading.partitions import partition_fields
from log_lake.loading.sources import files_to_read
from log_lake.objects.normalize import normalized
from log_lake.settings import Settings
from log_lake.settings.settings import check_settings
from log_lake.zng.zst.writer import ZstWriter

_NO_FIELD = "_no_field"
"""The name of a column that is added to records without any field, because a table without columns has no rows.
The result does not have it."""


def convert(args: Namespace) -> None:
    """Convert files into one."""
    patterns, target = _source_and_target(args)
    format = _format(args, target)
    if target is not None and not args.force and os.path.isfile(target):
        raise exists(target)
    options = read_options(args) | _declared(args.type)
    if options.get("bad_records") == QUARANTINE:
        raise InvalidInput("--bad-records quarantine: a conversion has no pool for bad records; leave it out")
    check_settings(options, kind="append", key=ARRIVAL)
    files = files_to_read(patterns, {}, options)
    names = [file.uri for file in files]
    with kept_streams(names) as copies, shown_progress(files, "converting") as progress:
        conversion = Conversion(
            [_reading(name, names, options, copies.get(name, "")) for name in names],
            args.format,
            format,
            progress,
        )
        records = conversion.run(target, may_replace=args.force)
    _report(conversion, target, records, as_json=args.json)


def _source_and_target(args: Namespace) -> tuple[list[str], str | None]:
    """Returns the files to read, and the file to write; None is standard output."""
    if args.output is not None:
        return args.files, None if args.output == STDIN else args.output
    if len(args.files) < 2:
        raise InvalidInput(f"convert {args.files[0]}: name the target too, as the last file or with -o")
    *sources, target = args.files
    return sources, None if target == STDIN else target


def _format(args: Namespace, target: str | None) -> str:
    if target is not None and "://" in target:
        raise InvalidInput(f"{target}: a conversion writes local files; name one, and copy it from there")
    format: str | None = args.output_format or (format_of_output(target) if target else None)
    if format is None:
        raise InvalidInput(
            f"{target or 'standard output'}: the name does not tell the format; "
            f"end it in {choices(list(ENDINGS))}, or add --output-format"
        )
    if target is None and format in BINARY and sys.stdout.isatty():
        raise InvalidInput(f"--output-format {format} is not for a terminal; name a file")
    return format


def _declared(words: list[str]) -> dict[str, str]:
    declared = {}
    for word in words:
        name, equals, kind = word.partition("=")
        if not equals:
            raise InvalidInput(f"--type {word!r}: write FIELD=TYPE")
        declared[f"type.{name}"] = kind
    return declared


def _reading(file: str, files: list[str], options: dict[str, str], copy: str) -> Reading:
    settings = Settings(options)
    declared = settings.declared
    constants = partition_fields(files, declared) if settings["partitions"] == "hive" else {}
    return Reading(
        file,
        declared=declared,
        key=(_NO_FIELD,),
        records=settings["records"],
        csv=csv_options(settings),
        expansion=Expansion(most=settings["expansion.max"]),
        constants=constants.get(file, ()),
        path=copy,
    )


@dataclass
class Conversion:
    """One conversion: the files, and the format of the target; afterwards `notes` say what was detected and what
    is not kept."""

    readings: list[Reading]
    declared_format: str
    format: str
    progress: Callable[[str, float], None] = silent
    notes: tuple[str, ...] = ()

    def run(self, target: str | None, *, may_replace: bool) -> int:
        """Write the target; returns how many records it has.  Raises InvalidInput, and what `sink` raises."""
        if self.format in VALUE_FORMATS:
            formats = [format_of(reading, self.declared_format) for reading in self.readings]
            if all(format in VALUE_FORMATS for format in formats):
                with sink(target, may_replace=may_replace) as file:
                    return self._copy_values(formats, file)
        with sink(target, may_replace=may_replace) as file:
            return self._write_tables(file)

    def _copy_values(self, formats: list[str], file: BinaryIO) -> int:
        count = 0
        writer = value_writer(file, self.format)
        for reading, format in zip(self.readings, formats, strict=True):
            reading.progress = self.progress
            with _naming(reading.file):
                for values in read_values(reading, format):
                    writer.write(values)
                    count += len(values)
        writer.close()
        if isinstance(writer, ZstWriter) and writer.emptied:
            arrays = counted(writer.emptied, "null array")
            self.notes += (f"{arrays} inside of arrays or unions became empty: ZST has no form for them",)
        return count

    def _write_tables(self, file: BinaryIO) -> int:
        source, schema, count, is_united = FileSource(self.readings), pa.schema([]), 0, False
        if self.format != "json":
            for table in self._tables(source):
                is_united = is_united or (count > 0 and table.schema.names != schema.names)
                schema, count = unite_schemas([schema, table.schema]), count + table.num_rows
            is_united = is_united or any(UNITED in note for note in source.notes)
            schema = _without_stand_in(schema)
            if count and not schema.names:
                raise InvalidInput(
                    f"the records have no fields: {self.format} cannot hold them; use --output-format json"
                )
        for reading in self.readings:
            reading.progress = self.progress
        again = FileSource(self.readings)
        tables = self._tables(again)
        if self.format == "json":
            shown: list[pa.Schema] = [schema]
            tables = _seen(tables, shown)
        else:
            shown = [schema]
            tables = (cast_table(table, schema, what="the files") for table in tables)
        written = write_to(file, tables, schema, self.format)
        self.notes += tuple(note for note in again.notes if UNITED not in note)
        if is_united:
            self.notes += (UNITED,)
        self._say_untyped(shown[0])
        return written

    def _tables(self, source: FileSource) -> Iterator[pa.Table]:
        for block in source.blocks(self.declared_format):
            if block.table.num_rows:
                yield normalized(block.table)

    def _say_untyped(self, schema: pa.Schema) -> None:
        names = untyped(schema, self.format)
        if names:
            self.notes += (f"{self.format} does not keep the types of {listed(names)}",)


def _without_stand_in(schema: pa.Schema) -> pa.Schema:
    index = schema.get_field_index(_NO_FIELD)
    if index >= 0 and pa.types.is_null(schema.field(index).type):
        return schema.remove(index)
    return schema


def _seen(tables: Iterable[pa.Table], schemas: list[pa.Schema]) -> Iterator[pa.Table]:
    """Yields the tables unchanged.  After each, `schemas[0]` is the united schema of those so far."""
    for table in tables:
        schemas[0] = unite_schemas([schemas[0], table.schema])
        yield table


@contextmanager
def _naming(file: str) -> Iterator[None]:
    """Within the block, an error about a value names the file."""
    try:
        yield
    except Corrupt as error:
        raise InvalidInput(str(error)) from error
    except InvalidInput as error:
        named = str(error).startswith(file)
        raise InvalidInput(str(error) if named else f"{file}: {error}") from error


def _report(conversion: Conversion, target: str | None, records: int, *, as_json: bool) -> None:
    if as_json and target is not None:
        print_json({"records": records, "format": conversion.format, "notes": list(conversion.notes)})
        return
    for note in conversion.notes:
        say(note)
    if target is not None and os.path.isfile(target):
        size = human_size(os.path.getsize(target))
        say(f"{target}: wrote {counted(records, 'record')} as {conversion.format} ({size})")
