"""Draws the picture of docs/architecture.md from the code: packages, their floors, and which package imports
which.

    python -m local.picture            writes the picture into the page
    python -m local.picture --check    fails if the page shows another picture

The floors are those that `lint-imports` checks (pyproject.toml); the arrows are the imports of the files.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/architecture.md"
BEGIN = "<!-- picture: python -m local.picture -->\n"
END = "<!-- end of the picture -->\n"
DOES = {
    "dags": "DAG files: topology only",
    "plugins": "the web view in Airflow",
    "local": "make demo, make up, lint",
    "airflow_lake": "operators, sensors, groups",
    "pyspark_lake": "what PySpark users call",
    "spark_apps": "agents on Spark, data source",
    "log_lake": "the lake: what people import",
    "lake_core": "journal, history, store",
}
"""What each package does, in a few words, from the top down."""


def floors(package: str) -> list[list[str]]:
    """The rooms of each floor of a package, from the top down; rooms of one floor do not import each other."""
    tools: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    contracts = tools["importlinter"]["contracts"]
    (layers,) = [one["layers"] for one in contracts if one.get("containers") == [package]]
    return [re.split(r"\s*\|\s*", layer) for layer in layers]


def imports(package: str) -> set[str]:
    """The other packages that the files of a package import."""
    packages = set()
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            packages |= {name.partition(".")[0] for name in names}
    return packages & DOES.keys() - {package}


def picture() -> str:
    """The picture as a Mermaid diagram."""
    lines = ["```mermaid", "flowchart TD"]
    for package, does in DOES.items():
        rooms = ""
        if package in {"log_lake", "lake_core"}:
            rooms = "<br/>" + "<br/>".join(", ".join(floor) for floor in floors(package))
        lines.append(f'    {package}["<b>{package}</b>: {does}{rooms}"]')
    for package in DOES:
        lines += [f"    {package} --> {other}" for other in DOES if other in imports(package)]
    lines += ['    store[("an object store with create-only writes")]', "    lake_core --> store", "```"]
    return "\n".join(lines) + "\n"


def with_picture(text: str) -> str:
    """The page with the picture of the current code."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + picture() + END + rest.split(END)[1]


def main(words: Sequence[str]) -> int:
    """Writes or checks the picture; the status is 1 if the page shows another one."""
    text = PAGE.read_text()
    drawn = with_picture(text)
    if "--check" in words:
        return int(drawn != text)
    PAGE.write_text(drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
