"""What the pages call a setting, a command or a DAG is one."""

from __future__ import annotations

import argparse
import re

from log_lake.cli.main import build_parser
from log_lake.indexes.rule import INDEX_PREFIX
from log_lake.settings.settings import KNOWN
from tests.support.repository import ROOT

PAGES = {
    str(page.relative_to(ROOT)): page.read_text()
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
}
GROUPS = {name.partition(".")[0] for name in KNOWN if "." in name}
NEW = {"compact.quiet": None, "compact.dept": None}
"""What the reader of docs/first-change.md makes, and what docs/policies.md shows a message about."""


def is_module(name: str) -> bool:
    path = name.replace(".", "/")
    return any((ROOT / package / path).with_suffix(".py").exists() for package in ("lake_core", "log_lake"))


def test_settings_that_the_pages_name_are_settings() -> None:
    named = re.compile(rf"(?<![\w/.])(?:{'|'.join(sorted(GROUPS))})(?:\.[a-z_]+)+(?![\w/(])")
    unknown = {
        f"{page}: {name}"
        for page, text in PAGES.items()
        for name in named.findall(re.sub(r"https?://\S+", "", text))
        if name not in KNOWN | NEW
        and not is_module(name)
        and not (name.startswith(INDEX_PREFIX) and name.count(".") == 1)  # a rule, which users name
        and not name.endswith((".py", ".md", ".parquet", ".svg"))
    }
    assert unknown == set()


def test_commands_that_the_pages_show_are_commands() -> None:
    (commands,) = [a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    shown = {
        f"{page}: {name}"
        for page, text in PAGES.items()
        for name in re.findall(r"(?:^|`)lake ([a-z][a-z-]+)", text, re.MULTILINE)
        if name not in commands.choices
    }
    assert shown == set()


def test_the_page_of_the_agents_has_a_row_for_every_dag() -> None:
    rows = set(re.findall(r"^\| `lake_(\w+)` \|", PAGES["docs/airflow.md"], re.MULTILINE))
    assert rows >= {"ingest", "intervals", "compact", "checkpoint", "tombstones"}
    assert {path.stem for path in (ROOT / "dags").glob("[a-z]*.py")} == rows
