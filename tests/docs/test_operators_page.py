"""The table of operators in docs/airflow.md names every argument of each, and no other."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.repository import ROOT

PAGE = (ROOT / "docs" / "airflow.md").read_text()
FOLDER = ROOT / "airflow_lake" / "operators"
OF_ALL = {"pool_name", "lake", "branch", "spark", "spark_conf", "retry_policy", "transaction"}
ROWS = dict(re.findall(r"^\| `(\w+\.Lake\w+Operator)` \|[^|]*\|([^|]*)\|$", PAGE, re.MULTILINE))
CLASSES = {
    node.name: (path.stem, node)
    for path in FOLDER.glob("*.py")
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.ClassDef) and node.name.startswith("Lake")
}


def arguments(name: str) -> set[str]:
    """The arguments of an operator, with those of the classes that it extends."""
    if name not in CLASSES:
        return set()
    _, node = CLASSES[name]
    own = {
        argument.arg
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        for argument in method.args.kwonlyargs
    }
    return own.union(*(arguments(base.id) for base in node.bases if isinstance(base, ast.Name)))


def test_every_operator_has_a_row() -> None:
    shared = {"LakeOperator", "LakeFilesOperator"}
    assert set(ROWS) == {f"{module}.{name}" for name, (module, _) in CLASSES.items() if name not in shared}


@pytest.mark.parametrize("operator", ROWS)
def test_a_row_names_every_argument_and_no_other(operator: str) -> None:
    told = set(re.findall(r"`([a-z_]+)(?:=True)?`", ROWS[operator]))
    assert told == arguments(operator.partition(".")[2]) - OF_ALL
