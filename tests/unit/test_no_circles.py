"""No file of the project imports itself in a circle, also not for types alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.support.repository import ROOT

PACKAGES = (
    "lake_core", "log_lake", "spark_apps", "pyspark_lake", "airflow_lake", "dags", "plugins", "local", "benchmarks",
)  # fmt: skip


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}


def imported(path: Path) -> Iterator[str]:
    """The modules of the project that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{path}: a relative import"
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from inside & FILES.keys()
            if node.module in FILES and len(inside & FILES.keys()) < len(inside):
                yield node.module


def test_no_file_imports_itself_in_a_circle() -> None:
    graph = {module: set(imported(path)) - {module} for module, path in FILES.items()}
    assert sum(map(len, graph.values())) > 1_000
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"a circle: {' -> '.join(error.args[1])}") from None
