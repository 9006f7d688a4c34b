"""`lake convert`: between all formats, without a lake; what a format cannot hold is refused or said."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.errors import AlreadyExists
from log_lake.cli.arguments import FILE_FORMATS
from log_lake.console.sink import sink
from tests.support.command import ALREADY_EXISTS, INVALID_INPUT, NOT_FOUND, Command
from tests.support.zng_files import (
    CONFORMANCE,
    files,
    lines_of,
    opened,
    rows_of,
    rows_of_text,
    zng_of,
    zst_of,
)

ENDINGS = {"json": "ndjson"}
TEXT = """{k:1,s:"a",ip:10.0.0.1,d:1.5,h:2.5(float16),t:2026-01-31T12:00:00.5Z,l:|["x","y"]|,p:80(port=(uint16))}
{k:2,s:"b",ip:null(ip),d:2.,h:null(float16),t:null(time),l:null(|[string]|),p:null(port=(uint16))}
"""
PLAIN = '{k:1,s:"a",l:[1,2],r:{x:1.5}}\n{k:2,s:"b",l:null([int64]),r:null({x:float64})}\n'
VALUES = files(CONFORMANCE / "zst", "*.zng")
STREAMS = files(CONFORMANCE / "zng", "*.zng")


def target(lake: Command, format: str, name: str = "out") -> str:
    return str(lake.folder / f"{name}.{ENDINGS.get(format, format)}")


def text_of(lake: Command, file: str) -> str:
    return lake("convert", file, "-o", "-", "--output-format", "zson").out


@pytest.mark.parametrize("format", ["parquet", "zng", "zst", "zson"])
@pytest.mark.parametrize("source", ["parquet", "zng", "zst", "zson"])
def test_types_survive_every_way_between_formats_that_keep_them(
    lake: Command, source: str, format: str
) -> None:
    lake("convert", lake.file("a.zson", TEXT), target(lake, source, "b"))
    if source != format:
        lake("convert", target(lake, source, "b"), target(lake, format, "c"))
    assert text_of(lake, target(lake, format, "b" if source == format else "c")) == TEXT


@pytest.mark.parametrize("format", FILE_FORMATS)
@pytest.mark.parametrize("source", ["json", "parquet", "zng", "zst", "zson"])
def test_plain_records_go_from_any_format_to_any_other(lake: Command, source: str, format: str) -> None:
    begin = target(lake, source, "begin")
    lake("convert", lake.file("a.zson", PLAIN), begin)
    lake("convert", begin, target(lake, format))
    if format == "arrow":
        lines = pa.ipc.open_stream(target(lake, format)).read_all().to_pylist()
        assert lines[0] == {"k": 1, "s": "a", "l": [1, 2], "r": {"x": 1.5}}
    elif format == "csv":
        text = Path(target(lake, format)).read_text()
        assert text.splitlines()[1:] == ['1,"a","[1,2]","{""x"":1.5}"', '2,"b",,']
    else:
        assert text_of(lake, target(lake, format)) == PLAIN


@pytest.mark.parametrize("path", VALUES)
def test_inputs_of_the_original_become_its_files_byte_for_byte(lake: Command, path: Path) -> None:
    done = lake("convert", str(path), target(lake, "zst"))
    assert Path(target(lake, "zst")).read_bytes() == path.with_suffix(".zst").read_bytes()
    lake("convert", str(path.with_suffix(".zst")), target(lake, "zng"))
    written = rows_of(Path(target(lake, "zng")).read_bytes())
    is_lost = path.stem == "array-nulls"
    assert (zng_of(written) == zng_of(rows_of(path.read_bytes()))) is not is_lost
    assert ("1 null array inside of arrays or unions became empty" in done.err) is is_lost


@pytest.mark.parametrize("path", [*VALUES, *STREAMS])
def test_text_is_a_form_of_every_value(lake: Command, path: Path) -> None:
    lake("convert", str(path), target(lake, "zson"))
    assert Path(target(lake, "zson")).read_text().splitlines() == lines_of(path.read_bytes())
    lake("convert", target(lake, "zson"), target(lake, "zng"))
    assert zng_of(rows_of(Path(target(lake, "zng")).read_bytes())) == zng_of(rows_of(path.read_bytes()))


@pytest.mark.parametrize("path", [*VALUES, *STREAMS])
@pytest.mark.parametrize("format", ["json", "csv", "parquet", "arrow"])
def test_every_input_has_as_many_records_in_other_formats(lake: Command, path: Path, format: str) -> None:
    count = len(lines_of(path.read_bytes()))
    done = lake("convert", str(path), target(lake, format), "--json")
    assert done.records[0]["records"] == count


def test_a_source_may_be_compressed_many_files_or_standard_input(
    lake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.file("in/a.csv.gz", "k,s\n1,a\n")
    lake.file("in/b.ndjson", '{"k":2,"s":"b"}\n')
    lake("convert", str(lake.folder / "in"), target(lake, "zson"))
    assert Path(target(lake, "zson")).read_text() == '{k:1,s:"a"}\n{k:2,s:"b"}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b'{"k":3}\n'))))
    assert lake("convert", "-", "-", "--output-format", "csv").out == '"k"\n3\n'


def test_a_file_that_exists_is_not_replaced_without_force(lake: Command) -> None:
    path = lake.file("out.ndjson", "precious")
    source = lake.file("a.zson", "{k:1}")
    message = lake.fails(ALREADY_EXISTS, "convert", source, path)
    assert message == f"lake: {path} exists; name another file, or add --force"
    assert Path(path).read_text() == "precious"
    lake("convert", source, path, "--force")
    assert Path(path).read_text() == '{"k":1}\n'
    lake("convert", path, path, "--force")
    assert Path(path).read_text() == '{"k":1}\n'


def test_a_file_that_appears_meanwhile_is_not_replaced(lake: Command) -> None:
    path = lake.folder / "out"
    output = sink(str(path), may_replace=False)
    output.__enter__().write(b"x")
    path.write_text("precious")
    with pytest.raises(AlreadyExists):
        output.__exit__(None, None, None)
    assert path.read_text() == "precious"
    assert [entry.name for entry in lake.folder.iterdir()] == ["out"]


@pytest.mark.parametrize("format", FILE_FORMATS)
def test_a_conversion_that_fails_leaves_nothing(lake: Command, format: str) -> None:
    data = zng_of(rows_of_text("".join(f'{{k:{k},s:"bad"}}\n' for k in range(100))))
    source = lake.file("a.zng", data[:-10])
    message = lake.fails(INVALID_INPUT, "convert", source, target(lake, format))
    assert f"{source}: byte " in message
    assert [entry.name for entry in lake.folder.iterdir()] == ["a.zng"]


def test_values_that_a_format_has_no_form_for_are_refused_in_one_line(lake: Command) -> None:
    number = lake.file("number.zng", zng_of(rows_of_text("1\n")))
    for format in ("json", "csv", "parquet", "arrow"):
        message = lake.fails(INVALID_INPUT, "convert", number, target(lake, format))
        assert message.endswith(
            "number.zng, line 1: a value of type int64, which is no record; make it a field of one"
        )
    message = lake.fails(INVALID_INPUT, "convert", number, target(lake, "zst"))
    assert message.startswith(f"lake: {number}: a value of type <int64>: ZST holds records")
    lake("convert", number, target(lake, "zson"))
    null = lake.file("null.zson", "{a:[null({x:int64})]}")
    assert "ZST has no form for it" in lake.fails(INVALID_INPUT, "convert", null, target(lake, "zst"))
    nothing = lake.file("nothing.ndjson", "{}\n{}\n")
    for format in ("csv", "parquet", "arrow", "zng"):
        message = lake.fails(INVALID_INPUT, "convert", nothing, target(lake, format))
        assert "the records have no fields" in message
    assert lake("convert", nothing, "-", "--output-format", "json").out == "{}\n{}\n"


def test_what_is_not_kept_is_said(lake: Command) -> None:
    several = lake.file("several.zson", '{k:1}(=foo)\n{k:2,u:1((int64,string))}\n{}\n{k:3,u:"x"}\n')
    done = lake("convert", several, target(lake, "csv"))
    assert "records of several types have one type together" in done.err
    assert "the name of the record type 'foo' is not kept" in done.err
    assert Path(target(lake, "csv")).read_text() == '"k","u"\n1,\n2,"1"\n,\n3,"""x"""\n'
    done = lake("convert", several, target(lake, "json"))
    assert "several types" not in done.err
    assert Path(target(lake, "json")).read_text().splitlines() == [
        '{"k":1}', '{"k":2,"u":1}', "{}", '{"k":3,"u":"x"}',
    ]  # fmt: skip
    done = lake("convert", lake.file("typed.zson", TEXT), target(lake, "json", "typed"))
    assert "json does not keep the types of ip (ip), h (float16), t (timestamp_ns)" in done.err
    done = lake("convert", lake.file("typed.zson", TEXT), target(lake, "zng", "typed"), "--json")
    assert done.records == [{"records": 2, "format": "zng", "notes": []}]


def test_reading_options_and_declared_types_count(lake: Command) -> None:
    path = lake.file("a.txt", "k;t\n1;NA\n2;2026-01-31\n")
    words = ("--format", "csv", "--csv-null", "NA", "--type", "k=uint8", "--type", "t=date")
    lake("convert", path, target(lake, "parquet"), *words)
    schema = pq.read_schema(target(lake, "parquet"))
    assert [field.type for field in schema] == [pa.uint8(), pa.date32()]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["a.zson"], "convert a.zson: name the target too"),
        (["a.zson", "out.xyz"], "out.xyz: the name does not tell the format; end it in .ndjson"),
        (["a.zson", "-"], "standard output: the name does not tell the format"),
        (["a.zson", "s3://bucket/out.zng"], "a conversion writes local files"),
        (["a.zson", "out.ndjson.zst"], "the lake writes no compressed files; leave .zst out"),
        (["a.zson", "out.csv.gz"], "the lake writes no compressed files; leave .gz out"),
        (["a.zson", "out.zng", "--bad-records", "quarantine"], "a conversion has no pool for bad records"),
        (["a.zson", "out.zng", "--type", "k"], "--type 'k': write FIELD=TYPE"),
        (["a.zson", "out.zng", "--type", "k=no"], "type 'no' of field 'k' is unknown"),
        (["bad.ndjson", "out.zng"], "bad.ndjson, line 2: "),
    ],
)
def test_mistakes_are_one_line(lake: Command, words: list[str], says: str) -> None:
    lake.file("a.zson", "{k:1}")
    lake.file("bad.ndjson", '{"k":1}\n{"k":\n')
    with contextlib.chdir(lake.folder):
        assert says in lake.fails(INVALID_INPUT, "convert", *words)
        assert not [name for name in os.listdir() if name.startswith("out")]
        assert "no file matches" not in lake.fails(NOT_FOUND, "convert", "missing.zng", "out.zng")


def test_no_lake_is_needed(tmp_path: Path) -> None:
    (tmp_path / "a.zson").write_text("{k:1}\n")
    words = [sys.executable, "-m", "log_lake.cli.main", "convert", "a.zson", "b.zst"]
    environment = {k: v for k, v in os.environ.items() if k != "LAKE"}
    source = str(Path(__file__).parents[2])
    done = subprocess.run(
        words, cwd=tmp_path, env=environment | {"PYTHONPATH": source}, capture_output=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr.decode().startswith("b.zst: wrote 1 record as zst (")
    assert (tmp_path / "b.zst").read_bytes() == zst_of(rows_of_text("{k:1}"))
    assert len(opened((tmp_path / "b.zst").read_bytes()).types) == 1
