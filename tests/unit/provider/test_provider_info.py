"""What Airflow is told of this package: every module of the folders is named."""

from __future__ import annotations

import pytest

from airflow_lake.provider import get_provider_info
from tests.support.repository import ROOT

NO_OPERATORS = {"base", "files", "given"}
"""What the operators share."""
PARTS = {"interest"}
"""What the triggers are made of."""


@pytest.mark.parametrize(
    ("kind", "others"),
    [("operators", NO_OPERATORS), ("sensors", set()), ("triggers", PARTS), ("hooks", set())],
)
def test_every_module_of_a_folder_is_named(kind: str, others: set[str]) -> None:
    (told,) = get_provider_info()[kind]
    folder = ROOT / "airflow_lake" / kind
    modules = {path.stem for path in folder.glob("[!_]*.py")} - others
    assert sorted(told["python-modules"]) == sorted(f"airflow_lake.{kind}.{name}" for name in modules)
