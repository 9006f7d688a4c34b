"""Files of the original programs: what they read is read alike, and what they wrote is written byte for byte."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from log_lake.zng.rows import batch_of
from tests.support.zng_files import CONFORMANCE, files, lines_of, opened, rows_of, zng_of, zst_of

ZNG = files(CONFORMANCE / "zng", "*.zng")
ZST = files(CONFORMANCE / "zst", "*.zst")

OTHER_TEXT = {"array-nulls", "set", "typedef", "typevalue-map-etc"}
"""Inputs that people wrote, in a spelling that no program prints: `null` for `null(int64)`, a set out of order."""


def manifest(path: Path) -> dict[str, object]:
    return json.loads(path.with_name("MANIFEST.json").read_text())[path.stem]


@pytest.mark.parametrize("path", ZNG)
def test_a_stream_reads_to_the_text_that_the_original_prints(path: Path) -> None:
    lines = lines_of(path.read_bytes())
    if path.stem == "multiple":  # the expected text is the answer of a count
        lines = [f"{{count:{len(lines)}(uint64)}}"]
    assert lines == path.with_name(f"{path.stem}.expected.zson").read_text().splitlines()


@pytest.mark.parametrize("path", ZST)
def test_an_input_reads_to_its_text(path: Path) -> None:
    text = path.with_suffix(".zson")
    lines = lines_of(path.with_suffix(".zng").read_bytes())
    if path.stem in OTHER_TEXT:
        assert len(lines) == len(text.read_text().splitlines())
    else:
        assert lines == text.read_text().splitlines()


@pytest.mark.parametrize("path", ZST)
def test_an_input_is_written_again_byte_for_byte(path: Path) -> None:
    data = path.with_suffix(".zng").read_bytes()
    assert zng_of(rows_of(data)) == data
    assert zng_of(map(batch_of, rows_of(data))) == data


@pytest.mark.parametrize("path", ZST)
def test_zst_is_written_byte_for_byte(path: Path) -> None:
    rows = rows_of(path.with_suffix(".zng").read_bytes())
    for written in (zst_of(rows), zst_of(map(batch_of, rows))):
        assert written == path.read_bytes()
        assert hashlib.sha256(written).hexdigest() == manifest(path)["sha256"]


@pytest.mark.parametrize("path", ZST)
def test_zst_is_read_back_equal(path: Path) -> None:
    data = path.with_suffix(".zng").read_bytes()
    lost = (
        path.stem == "array-nulls"
    )  # a null array in an array comes back empty: the format has no form for it
    assert (zng_of(opened(path.read_bytes()).batches()) == data) is not lost


@pytest.mark.parametrize("path", ZST)
def test_the_maps_of_a_file_are_what_its_manifest_says(path: Path) -> None:
    file, said = opened(path.read_bytes()), manifest(path)
    assert len(file.types) == said["super_types"]
    assert list(file.trailer.sections) == said["sections"]
    assert (file.trailer.skew_bytes, file.trailer.segment_bytes) == (
        said["skew_thresh"],
        said["segment_thresh"],
    )
    assert sum(map(len, file.batches())) == said["records"]


@pytest.mark.skipif(
    not (CONFORMANCE / "zst/hello.zst").exists(), reason="the conformance files are not there"
)
def test_maps_are_printed_as_text() -> None:
    empty = "[]([{offset:int64,length:int32}])"
    assert list(opened((CONFORMANCE / "zst/hello.zst").read_bytes()).lines()) == [
        "{a:null(string),b:null(string)}",
        "{root:[{offset:29,length:2(int32)}]}",
        f"{{a:{{column:[{{offset:0,length:16(int32)}}],presence:{empty}}},"
        f"b:{{column:[{{offset:16,length:13(int32)}}],presence:{empty}}}}}",
        '{magic:"zst",version:1(int32),skew_thresh:26214400(int32),segment_thresh:5242880(int32),sections:[31,94]}',
    ]
