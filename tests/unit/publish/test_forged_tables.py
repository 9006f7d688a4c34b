"""A published table that a writer of its pool forged leads nobody elsewhere: it is Corrupt, of that pool alone.

The metadata and the manifests of the table are changed, as who may write below the pool's folder can.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from lake_core.errors import Corrupt
from log_lake.iceberg_catalog.ages import PublicationAges
from log_lake.iceberg_catalog.tables import loaded, table_of
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.publish.run import publish_iceberg

ELSEWHERE = "/elsewhere"


def two_published(folder: Path) -> tuple[Lake, Pool, Pool]:
    """A lake, and two pools of it that are published."""
    lake = Lake.create(folder)
    for name in ("forged", "other"):
        lake.create_pool(name, key="k").branch().append(pa.table({"k": [len(name)]}))
        publish_iceberg(lake.pool(name))
    return lake, lake.pool("forged"), lake.pool("other")


def metadata_name(pool: Pool) -> str:
    return f"{pool.config.id}/published/iceberg/main/metadata/v1.metadata.json"


def metadata_of(pool: Pool) -> Any:
    return json.loads(pool.store.get(metadata_name(pool)) or b"")


def answer(lake: Lake, name: str) -> Any:
    """What the catalog answers for a pool."""
    return json.loads(loaded(table_of(lake, name), PublicationAges()).text)


def _property(name: str, value: str) -> Callable[[Any, Any], object]:
    return lambda metadata, _: metadata["properties"].__setitem__(name, value)


FORGED: dict[str, Callable[[Any, Any], object]] = {
    "a class that pyiceberg loads": _property("py-io-impl", "os.system"),
    "an endpoint that gets the reader's requests": _property("s3.endpoint", "http://elsewhere.example"),
    "a table whose files may be deleted": _property("gc.enabled", "true"),
    "a table that does not forbid deletes": lambda metadata, _: metadata["properties"].pop("gc.enabled"),
    "another pool's list of manifests": lambda metadata, other: metadata["snapshots"][0].update(
        {"manifest-list": other["snapshots"][0]["manifest-list"]}
    ),
    "a list of manifests in a folder above": lambda metadata, _: metadata["snapshots"][0].update(
        {"manifest-list": f"{metadata['location']}/metadata/../../../../x.avro"}
    ),
    "another pool's table as an earlier one": lambda metadata, other: metadata["metadata-log"].append(
        {"metadata-file": f"{other['location']}/metadata/v1.metadata.json", "timestamp-ms": 1}
    ),
    "statistics in a file": lambda metadata, _: metadata["statistics"].append({"statistics-path": ELSEWHERE}),
    "statistics of partitions in a file": lambda metadata, _: metadata["partition-statistics"].append(
        {"statistics-path": ELSEWHERE}
    ),
}


@pytest.mark.parametrize("how", FORGED)
def test_forged_metadata_is_corrupt_and_sent_to_no_client(how: str, tmp_path: Path) -> None:
    lake, pool, other = two_published(tmp_path)
    metadata = metadata_of(pool)
    FORGED[how](metadata, metadata_of(other))
    pool.store.put(metadata_name(pool), json.dumps(metadata).encode())
    with pytest.raises(
        Corrupt, match=r"published/iceberg/main: metadata 1: it.*publish to another folder"
    ) as raised:
        answer(lake, "forged")
    assert "\n" not in str(raised.value)
    assert answer(lake, "other") == metadata_of(other), "another pool is answered as before"
    assert pool.at().to_table().num_rows == 1


def test_of_a_name_that_comes_twice_the_catalog_sends_what_it_checked(tmp_path: Path) -> None:
    lake, pool, _ = two_published(tmp_path)
    text = pool.store.get(metadata_name(pool)) or b""
    pool.store.put(
        metadata_name(pool), b'{"properties": {"s3.endpoint": "http://elsewhere.example"},' + text[1:]
    )
    sent = loaded(table_of(lake, "forged"), PublicationAges()).text
    assert b"elsewhere" not in sent
    assert json.loads(sent) == json.loads(text)


@pytest.mark.parametrize("of_other", [True, False], ids=["of another pool", "with the id of an own one"])
def test_a_forged_file_of_data_is_not_taken_into_the_next_table(of_other: bool, tmp_path: Path) -> None:
    lake, pool, other = two_published(tmp_path)
    objects = [next(iter(one.store.list(f"{one.config.id}/data"))).name for one in (pool, other)]
    forged = f"{lake.store.uri}/{objects[1]}" if of_other else f"{ELSEWHERE}/{Path(objects[0]).name}"
    (name,) = (one.name for one in pool.store.list(f"{pool.config.id}/published") if "-m0.avro" in one.name)
    reader = fastavro.reader(io.BytesIO(pool.store.get(name) or b""))
    kept = {key: text for key, text in reader.metadata.items() if not key.startswith("avro")}
    rows: list[Any] = list(reader)
    rows[0]["data_file"]["file_path"] = forged
    file = io.BytesIO()
    fastavro.writer(file, reader.writer_schema, rows, metadata=kept)
    pool.store.put(name, file.getvalue())
    pool.branch().append(pa.table({"k": [9]}))
    with pytest.raises(
        Corrupt, match=r"it names .* which is no object of the pool; publish to another folder"
    ):
        answer(lake, "forged")
