"""The recipes of CONTRIBUTING.md for a setting and a file format, followed in a copy of the package."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

from log_lake.loading import detect
from tests.support.repository import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
RAN = "import sys; from log_lake.cli.main import main; sys.exit(main(sys.argv[1:]))"


def blocks(heading: str) -> list[str]:
    """The code below a heading."""
    recipe = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [dedent(code) for code in re.findall(r"   ```python\n(.*?)   ```", recipe, re.DOTALL)]


class Copy:
    """A copy of the package, and a lake on which its `lake` command works."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "log_lake", folder / "log_lake", ignore=shutil.ignore_patterns("__pycache__"))

    def insert(self, file: str, text: str, *, before: str) -> None:
        """The text before the only place that says `before`."""
        path = self.folder / file
        source = path.read_text()
        assert source.count(before) == 1, (file, before)
        path.write_text(source.replace(before, text + before))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environ = os.environ | {
            "PYTHONPATH": f"{self.folder}:{ROOT}",
            "LAKE": str(self.folder / "lake"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-c", RAN, *words]
        return subprocess.run(
            command, env=environ, cwd=self.folder, capture_output=True, text=True, check=False, timeout=300
        )

    def out(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    copy = Copy(tmp_path)
    copy.out("init")
    copy.out("create", "logs", "--key", "ts")
    return copy


def test_a_setting_of_the_recipe_is_set_and_used_by_a_scan(copy: Copy) -> None:
    imported, row, code = blocks("Add a setting")
    table = "log_lake/reading/settings.py"
    copy.insert(table, imported, before="from log_lake.settings.settings import")
    copy.insert(table, indent(row, "    "), before='    "age_off": Setting(')
    before = "        return plan\n\n    def scan("
    copy.insert("log_lake/lake/view.py", indent(code, " " * 8), before=before)
    (copy.folder / "a.ndjson").write_text('{"ts": 1}\n{"ts": 9}\n')
    for _ in range(2):
        copy.out("load", "logs", "a.ndjson")
    assert "compact the pool" not in copy.run("scan", "logs").stderr
    copy.out("set", "logs", "scan.warn=1")
    assert "logs: a scan merges 2 objects at one key; compact the pool" in copy.run("scan", "logs").stderr
    assert "scan.warn" in copy.run("set", "logs", "scan.warn=0").stderr


def test_a_format_of_the_recipe_is_loaded_by_its_name_by_declaration_and_with_bad_records(copy: Copy) -> None:
    reader, row = blocks("Add a file format")
    (copy.folder / "log_lake/loading/formats/ltsv.py").write_text(reader)
    copy.insert(
        "log_lake/loading/options.py", ', "ltsv"', before=")\n\n\n@dataclass(frozen=True)\nclass Limit"
    )
    detecting = "log_lake/loading/detect.py"
    copy.insert(
        detecting, indent(row, "    "), before='}\n"""The row of each format, by its name in `FORMATS`."""'
    )
    line = "from log_lake.loading.formats.ltsv import read_ltsv\n"
    copy.insert(detecting, line, before="from log_lake.loading.formats.orc import")
    copy.out("set", "logs", "type.ts=bigint", "type.took=double", "type.ok=boolean", "bad_records=quarantine")
    (copy.folder / "a.ltsv").write_text("ts:2\thost:a:80\ttook:1.5\tok:true\nts:1\thost:b\n")
    (copy.folder / "b").write_bytes(gzip.compress(b"ts:3\nno field\nts:soon\n"))
    copy.out("load", "logs", "a.ltsv")
    copy.out("load", "logs", "b", "--format", "ltsv")
    records = [json.loads(text) for text in copy.out("scan", "logs").splitlines()]
    assert [(one["ts"], one.get("host")) for one in records] == [(1, "b"), (2, "a:80"), (3, None)]
    assert (records[1]["took"], records[1]["ok"]) == (1.5, True)
    rejected = [json.loads(text) for text in copy.out("scan", "logs.$rejected").splitlines()]
    assert sorted((one["line"], one["raw"]) for one in rejected) == [(2, "no field"), (3, "ts:soon")]
    copy.out("set", "logs", "bad_records=fail")
    assert "line 2: field 'no field' has no colon" in copy.run("load", "logs", "b", "--format", "ltsv").stderr


def test_every_format_that_a_user_may_declare_has_a_row() -> None:
    assert tuple(detect._TABLE) == detect.FORMATS
