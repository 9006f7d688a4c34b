"""One Spark for all tests of this folder, lakes of their own, and files to take in.

The session has another time zone than the lake on purpose: instants must not depend on it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local import java, processes
from log_lake.lake import Lake
from log_lake.lake.results import LoadResult
from log_lake.loading.sources import find_files
from spark_apps.load import load_files
from tests.support.files import as_bytes, pool_settings
from tests.support.spark.processes import end_all, in_session

TIME_ZONE = "America/New_York"


@pytest.fixture(scope="session")
def spark_environ() -> dict[str, str]:
    """What a process that runs Spark finds in its environment."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
        "JAVA_HOME": str(java.provide(os.environ).home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@pytest.fixture(scope="session")
def spark(spark_environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on two cores, in which a task is tried four times; filters are handed to data sources."""
    from pyspark.sql import SparkSession

    os.environ.update(
        {name: spark_environ[name] for name in ("JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP")}
    )
    session = (
        SparkSession.builder.master("local[2,4]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "2")  # 200 by default: for a handful of records, 200 tasks
        .config("spark.sql.session.timeZone", TIME_ZONE)
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    gateway = session.sparkContext._gateway.proc  # its Java, which outlives `stop`
    identity = processes.identify(gateway.pid)
    assert identity is not None
    yield session
    session.stop()
    gateway.stdin.close()  # which the Java waits for
    gateway.wait(timeout=600)
    left = in_session(gateway.pid)
    end_all(left)
    assert not left, f"Spark left processes behind: {left}"


@dataclass(frozen=True)
class Landing:
    """A lake, and a folder beside it where files land."""

    lake: Lake
    folder: Path

    @property
    def uri(self) -> str:
        """Where the lake is."""
        return self.lake.store.uri

    def file(self, name: str, content: bytes | str | list[dict[str, Any]]) -> str:
        """A landed file: bytes or text as they are, records as NDJSON."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(as_bytes(content))
        return str(path)

    def pool(self, name: str = "p", *, key: str = "k", **settings: str) -> str:
        """A new pool; `load_memory` stands for the setting `load.memory`."""
        self.lake.create_pool(name, key=key, settings=pool_settings(settings))
        return name

    def load(self, spark: Any, pool: str, *files: str, **options: Any) -> LoadResult:
        """The files, or all that landed, as one transaction."""
        landed = find_files(list(files) or [str(self.folder)])
        return load_files(spark, self.lake, pool_name=pool, files=landed, **options)

    def keys(self, pool: str, field: str = "k") -> list[Any]:
        """The key of every record, in the order of the scan."""
        table = self.lake.pool(pool).at().to_table()
        return table[field].to_pylist() if table.num_columns else []

    def data(self, pool: str) -> set[str]:
        """The data objects on the store, whether a transaction holds them or not."""
        folder = Path(self.uri.removeprefix("file://")) / self.lake.pool(pool).config.id / "data"
        return {path.stem for path in folder.glob("*.parquet")}

    def held(self, pool: str) -> set[str]:
        """The data objects that the pool's newest transaction holds."""
        newest = self.lake.pool(pool).at()
        snapshot = newest.state.branches["main"].snapshot
        return {r.object for sub in ("", *snapshot.sub_pools()) for r in snapshot.overlapping(sub_pool=sub)}

    def transactions(self, pool: str) -> int:
        """How many there are."""
        return sum(1 for _ in self.lake.pool(pool).log())


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    """A new lake, and a folder for files to land in."""
    folder = tmp_path / "landing"
    folder.mkdir()
    return Landing(Lake.create(str(tmp_path / "lake")), folder)
