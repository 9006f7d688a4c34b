"""The file that says who may ask `lake serve`, and what."""

from __future__ import annotations

from pathlib import Path

import pytest

from lake_core.errors import InvalidInput
from log_lake.iceberg_catalog.callers import Caller, CallerRole, caller_with, callers_in

A, B = "a" * 16, "b" * 16


def callers(folder: Path, text: str) -> tuple[Caller, ...]:
    file = folder / "tokens"
    file.write_text(text)
    return callers_in(str(file))


def test_one_token_alone_is_for_the_catalog(tmp_path: Path) -> None:
    for text in (A, f"\n {A} \n", f"# a comment\n{A}"):
        assert callers(tmp_path, text) == (Caller("", CallerRole.CATALOG, A.encode()),)


def test_a_line_names_a_caller_and_its_role(tmp_path: Path) -> None:
    found = callers(tmp_path, f"# who\nada  writer {A}\n\nkay.k@x keeper\t{B}\n")
    assert [(one.name, one.role) for one in found] == [
        ("ada", CallerRole.WRITER),
        ("kay.k@x", CallerRole.KEEPER),
    ]
    assert caller_with(B.encode(), found) is found[1]
    assert caller_with(B.encode()[:-1], found) is None
    assert caller_with(b"", found) is None
    assert A not in repr(found)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "16 to 4,096 characters"),
        ("short", "16 to 4,096 characters"),
        (f"{A}\n{B}", "line 1: has 1 words; write NAME ROLE TOKEN"),
        (f"ada writer {A}\nbob {B}", "line 2: has 2 words"),
        (f"ada admin {A}", "one of catalog, reader, writer, keeper"),
        (f"ada Writer {A}", "the second word is no role"),
        (f"{A} writer ada", "16 to 4,096 characters"),
        (f"a/b writer {A}", "the first word is no name"),
        (f"ada writer {A}\nbob reader {A}", "two lines have the same token"),
        (f"ada writer {A}\nada reader {B}", "two lines have the same name"),
        ("#" * (1 << 20) + "#", "has more than"),
    ],
)
def test_a_wrong_file_is_refused_without_showing_a_token(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidInput) as error:
        callers(tmp_path, text)
    assert says in str(error.value)
    assert A not in str(error.value)
    assert B not in str(error.value)
