"""docs/first-change.md names files that are there, and what it tells about them is so."""

from __future__ import annotations

import ast
import re
import textwrap

import pytest

from log_lake.settings.setting_types import duration
from tests.support.repository import ROOT

PAGE = (ROOT / "docs/first-change.md").read_text()
NEW = {"log_lake/compaction/strategies/quiet.py"}
"""Files that the reader makes."""


def test_the_files_that_the_walk_names_are_there() -> None:
    named = set(re.findall(r"`((?:lake_core|tests|docs|spark_apps)/[\w/.]+)`", PAGE))
    assert len(named) > 10
    assert {name for name in named - NEW if not (ROOT / name).exists()} == set()


def test_the_message_that_the_page_shows_is_the_one_that_a_user_sees() -> None:
    with pytest.raises(ValueError, match="use a duration") as refused:
        duration("soon")
    assert f"setting compact.quiet=soon: {refused.value}\n" in PAGE


def test_the_pieces_of_code_parse() -> None:
    pieces = re.findall(r"^( *)```python walk\n(.*?)^\1```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(pieces) == 3
    for _, piece in pieces:
        code = textwrap.dedent(piece)
        ast.parse(code if not code.startswith('"compact') else "{" + code + "}")
