"""docs/first-change.md names files that are there, and what it tells about them is so."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from log_lake.settings.setting_types import duration
from tests.support.repository import ROOT

PAGE = (ROOT / "docs/first-change.md").read_text()
NEW = {"log_lake/compaction/strategies/quiet.py"}
"""Files that the reader makes."""


def test_the_files_that_the_walk_names_are_there() -> None:
    named = set(re.findall(r"`((?:lake_core|log_lake|tests|docs|spark_apps)/[\w/.]+)`", PAGE))
    assert len(named) > 10
    assert {name for name in named - NEW if not (ROOT / name).exists()} == set()


def test_the_message_that_the_page_shows_is_the_one_that_a_user_sees() -> None:
    with pytest.raises(ValueError, match="use a duration") as refused:
        duration("soon")
    assert f"setting compact.quiet=soon: {refused.value}\n" in PAGE


def test_a_setting_that_is_added_as_the_page_says_is_set_shown_and_refused(tmp_path: Path) -> None:
    """In a copy of the package, by the page's own row and commands."""
    shutil.copytree(ROOT / "log_lake", tmp_path / "log_lake", ignore=shutil.ignore_patterns("__pycache__"))
    row = re.search(r'"compact.quiet": Setting.*\n', PAGE)
    assert row
    (place,) = re.findall(r"`([\w/.]+)`: add a line to `SETTINGS`", PAGE)
    settings = tmp_path / place
    taken = re.search(r"from log_lake.settings.setting_types import \w+\n", PAGE)
    assert taken
    before, beside, after = settings.read_text().partition('    "compact.depth"')
    before = before.replace("\nfrom log_lake", f"\n{taken[0]}from log_lake", 1)
    settings.write_text(f"{before}    {row[0]}{beside}{after}")
    environ = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}", "LAKE": str(tmp_path / "lake")}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        code = f"import sys; from log_lake.cli.main import main; sys.exit(main({list(words)!r}))"
        command = [sys.executable, "-c", code]
        return subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)

    commands = re.findall(r"^lake (.*?)(?: +# (.*))?$", PAGE.partition("## A strategy")[0], re.MULTILINE)
    assert len(commands) == 4
    for words, refusal in commands:
        done = run(*words.split())
        assert (done.returncode == 0) == (not refusal), done.stderr
        assert refusal in done.stderr
    shown = run("show", "logs").stdout
    assert re.search(r"compact\.quiet\W+6h", shown), shown


def test_the_pieces_of_code_parse() -> None:
    pieces = re.findall(r"^( *)```python walk\n(.*?)^\1```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(pieces) == 4
    for _, piece in pieces:
        code = textwrap.dedent(piece)
        ast.parse(code if not code.startswith('"compact') else "{" + code + "}")
