"""The lines of docs/python.md about PySpark run on the lake that the guide makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_python_guide import PAGE, run
from tests.support.documentation import examples

pytestmark = pytest.mark.spark


def test_the_examples_of_spark_read_write_and_stream_the_pool_of_the_guide(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = run(tmp_path, monkeypatch)["lake"]
    lake.create_pool("warnings", key="ts")
    (example,) = examples(PAGE, "python", "spark")
    names = {"spark": spark}
    # Spark's workers do not run in the test's folder
    exec(example.code.replace('"lake", "lake"', f'"lake", "{tmp_path}/lake"'), names)
    assert lake.pool("warnings").at().to_table().to_pylist() == [{"ts": 3, "level": "warn", "user": None}]
    assert names["stream"].isStreaming
