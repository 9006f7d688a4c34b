"""Other table formats, each as: make a table, open it, append records to it, count them.

Installed apart (`.venv/peers`), so that what they depend on does not meet what Airflow and Spark depend on.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from local.services import ROOT
from tests.acceptance.killed_writers import options

FOLDER = ROOT / ".venv" / "peers"


def install() -> None:
    """What requirements-bench.txt pins, once."""
    stamp = FOLDER / "stamp"
    pinned = (ROOT / "requirements-bench.txt").read_text()
    if stamp.exists() and stamp.read_text() == pinned:
        return
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv) if uv.exists() else "uv", "pip", "install", "--quiet", "--target", str(FOLDER)]
    subprocess.run(
        [*command, "--python", sys.executable, "-r", "requirements-bench.txt"], check=True, cwd=ROOT
    )
    stamp.write_text(pinned)


class Lake:
    """Ours."""

    def create(self, path: str, records: pa.Table) -> None:
        from lake_core.lake import Lake as Ours

        Ours.create(path, options=options()).create_pool("p", key=records.schema.names[0])

    def open(self, path: str) -> None:
        from lake_core.lake import Lake as Ours

        self._pool = Ours.open(path, options=options()).pool("p")
        self._branch = self._pool.branch()

    def append(self, records: pa.Table) -> None:
        self._branch.append(records)

    def count(self) -> int:
        return self._pool.at().records


class OneAtATime(Lake):
    """Ours without group commit: who loses a race tries again alone."""

    def open(self, path: str) -> None:
        from lake_core.commits import commit

        commit.PATIENCE = 10**9
        super().open(path)


class Files:
    """The floor: a Parquet file each, durable, and no table."""

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
    """pylance."""

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


class Delta:
    """deltalake (delta-rs)."""

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


PEERS: dict[str, Any] = {
    "lake": Lake,
    "lake, one at a time": OneAtATime,
    "lance": Lance,
    "deltalake": Delta,
    "floor: files, no table": Files,
}
