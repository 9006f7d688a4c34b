"""dlt in tests: nothing is sent, and nothing of the user's home folder is read or written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from log_lake import Lake

Pipeline = Any
"""A pipeline of dlt, which has no types here."""


@pytest.fixture(autouse=True)
def dlt_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A home and a folder of dlt's own; no telemetry; no context that another test left."""
    monkeypatch.setenv("RUNTIME__DLTHUB_TELEMETRY", "false")
    monkeypatch.setenv("PROVIDERS__ENABLE_AIRFLOW_SECRETS", "false")  # they are rows of a database
    monkeypatch.setenv("DLT_DATA_DIR", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    yield
    from dlt.common.configuration.container import Container
    from dlt.common.pipeline import PipelineContext

    Container()[PipelineContext].deactivate()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "lake")


@pytest.fixture
def pipeline(tmp_path: Path, uri: str) -> Callable[..., Pipeline]:
    """Makes a pipeline; `machine` names the folder that a machine keeps of it."""
    import dlt

    from log_lake.dlt import lake

    def make(name: str = "shop", *, machine: str = "one", **more: Any) -> Pipeline:
        return dlt.pipeline(
            name,
            destination=lake(uri),
            dataset_name="shop",
            pipelines_dir=str(tmp_path / machine),
            **more,
        )

    return make


def records(uri: str, pool: str, *names: str) -> list[tuple[Any, ...]]:
    """Some fields of the pool's records, sorted."""
    view = Lake.open(uri).pool(pool).at()
    if not view.references:
        return []
    rows = view.to_table(columns=list(names)).to_pylist()
    return sorted(tuple(row[name] for name in names) for row in rows)


def tags(uri: str, table: str = "articles") -> list[tuple[Any, ...]]:
    """The root records' id and the values of their tags, in the order of the lists."""
    roots = dict(records(uri, f"shop.{table}", "_dlt_id", "id"))
    nested = records(uri, f"shop.{table}__tags", "_dlt_parent_id", "_dlt_list_idx", "value")
    return sorted((roots[parent], place, value) for parent, place, value in nested)
