"""Other table formats behind one interface: make a table, open it, append records, count them. Some formats can
also delete a range of keys, compact and upsert.

They are installed in `.venv/peers`, so that their dependencies do not conflict with those of Airflow and Spark.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.apart import install_target
from tests.support.repository import ROOT
from tests.support.servers.s3 import options_of_environment

FOLDER = ROOT / ".venv" / "peers"


def install() -> None:
    """Installs what requirements-bench.txt pins, once."""
    install_target("requirements-bench.txt", FOLDER)


class Lake:
    """Tables of the lake."""

    def create(self, path: str, records: pa.Table) -> None:
        from log_lake.lake import Lake as Ours

        Ours.create(path, options=options_of_environment()).create_pool("p", key=records.schema.names[0])

    def open(self, path: str) -> None:
        from log_lake.lake import Lake as Ours

        self._lake = Ours.open(path, options=options_of_environment())
        self._pool = self._lake.pool("p")
        self._branch = self._pool.branch()

    def append(self, records: pa.Table) -> None:
        self._branch.append(records)

    def count(self) -> int:
        return self._pool.at().records

    def count_from(self, low: int) -> int:
        view = self._pool.at()
        return sum(t.num_rows for t in view.scan(columns=["k"], key_range=view.key_range(low=low)))

    def delete(self, low: int, high: int) -> None:
        self._branch.delete(key_range=self._pool.at().key_range(low=low, high=high))

    def compact(self) -> None:
        from log_lake.agents.compact.run import compact_pool, plan_pool

        compact_pool(self._lake, "p", plan_pool(self._lake, "p", now=time.time()))


class OneAtATime(Lake):
    """Tables of the lake without group commit: a writer that loses a race tries again by itself."""

    def open(self, path: str) -> None:
        from lake_core.history import HistoryLimits

        super().open(path)
        self._pool.history.limits = HistoryLimits(lost_races_before_request=10**9)


class Unsynced(Lake):
    """The lake without syncs: a crash of the machine could lose acknowledged appends. lance and deltalake, which
    sync nothing, have the same risk."""

    def open(self, path: str) -> None:
        import os

        os.fsync = lambda fd: None
        super().open(path)


class Files:
    """The floor: one Parquet file for each append, made durable, without a table."""

    def create(self, path: str, records: pa.Table) -> None:
        Path(path).mkdir()

    def open(self, path: str) -> None:
        self._folder, self._count = Path(path), 0

    def append(self, records: pa.Table) -> None:
        import os

        import pyarrow.parquet as pq

        self._count += 1
        with open(self._folder / f"{os.getpid()}-{self._count}.parquet", "xb") as file:
            pq.write_table(records, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())

    def count(self) -> int:
        import pyarrow.parquet as pq

        return sum(pq.read_metadata(p).num_rows for p in self._folder.glob("*.parquet"))


class Lance:
    """Tables of lance, by pylance."""

    def create(self, path: str, records: pa.Table) -> None:
        import lance

        lance.write_dataset(records.slice(0, 0), path)

    def open(self, path: str) -> None:
        import lance

        self._dataset = lance.dataset(path)

    def append(self, records: pa.Table) -> None:
        self._dataset.insert(records, mode="append")

    def count(self) -> int:
        self._dataset.checkout_latest()
        return int(self._dataset.count_rows())

    def count_from(self, low: int) -> int:
        self._dataset.checkout_latest()
        return int(self._dataset.count_rows(filter=f"k >= {low}"))

    def delete(self, low: int, high: int) -> None:
        self._dataset.checkout_latest()
        self._dataset.delete(f"k >= {low} and k < {high}")

    def compact(self) -> None:
        self._dataset.checkout_latest()
        self._dataset.optimize.compact_files()


class Delta:
    """Tables of Delta, by deltalake (delta-rs)."""

    def create(self, path: str, records: pa.Table) -> None:
        from deltalake import DeltaTable

        DeltaTable.create(path, schema=records.schema)

    def open(self, path: str) -> None:
        from deltalake import DeltaTable

        self._table = DeltaTable(path)

    def append(self, records: pa.Table) -> None:
        from deltalake import write_deltalake

        write_deltalake(self._table, records, mode="append")

    def count(self) -> int:
        self._table.update_incremental()
        return int(self._table.count())

    def count_from(self, low: int) -> int:
        import pyarrow.parquet as pq

        self._table.update_incremental()
        columns = (pq.read_table(file, columns=["k"])["k"].to_numpy() for file in self._table.file_uris())
        return sum(int((column >= low).sum()) for column in columns)

    def delete(self, low: int, high: int) -> None:
        self._table.update_incremental()
        self._table.delete(f"k >= {low} and k < {high}")

    def compact(self) -> None:
        self._table.update_incremental()
        self._table.optimize.compact()


PEERS: dict[str, Any] = {
    "lake": Lake,
    "lake, one at a time": OneAtATime,
    "lake, no syncs": Unsynced,
    "lance": Lance,
    "deltalake": Delta,
    "floor: files, no table": Files,
}
