"""A published table whose files were changed is Corrupt, in one line; its pool is read as before."""

from __future__ import annotations

import io
import os
import random
import zlib
from collections.abc import Callable
from pathlib import Path

import fastavro
import pytest

pytest.importorskip("pyiceberg")

from lake_core.errors import Corrupt, LakeError
from log_lake.lake.pool import Pool
from log_lake.publish.published import MAX_NUMBER
from log_lake.publish.run import publish_iceberg
from tests.support.iceberg import a_local_pool
from tests.support.mutations import changed_json, flipped

COUNT = int(os.environ.get("LAKE_TEST_MUTATIONS", "25"))
"""Changes of the table's files that are tried (`make fuzz`)."""

EACH = 50
"""Changes of one table: each that is published lengthens its pool's journal."""


def inflated(data: bytes) -> bytes:
    """The Avro file with one block of 300 MB of zeros, which are packed to a thousandth."""
    sync = data[-16:]
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(300)) + packer.flush()
    block = io.BytesIO()
    for number in (1, len(packed)):
        fastavro.schemaless_writer(block, "long", number)
    return data[: data.index(sync) + len(sync)] + block.getvalue() + packed + sync


def endless(data: bytes) -> bytes:
    """An Avro file of some bytes with as many records as a long counts: each has no bytes."""
    file, sync = io.BytesIO(), b"s" * 16
    fastavro.writer(file, {"type": "record", "name": "r", "fields": []}, [], sync_marker=sync)
    for number in (2**62, 0):
        fastavro.schemaless_writer(file, "long", number)
    return file.getvalue() + sync


NEGATIVE_LENGTH = b"Obj\x01\x02\x16avro.schema" + b"\xff" * 9 + b"\x01"

DAMAGE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a table of another format": (
        "v1.metadata.json",
        lambda data: data.replace(b'"format-version":2', b'"format-version":9'),
    ),
    "a text that is not UTF-8": (
        "v1.metadata.json",
        lambda data: data.replace(b'"location":"', b'"location":"\xeb'),
    ),
    "no name mapping": (
        "v1.metadata.json",
        lambda data: data.replace(b"schema.name-mapping.default", b"another"),
    ),
    "a name mapping that is no JSON": (
        "v1.metadata.json",
        lambda data: data.replace(b'"schema.name-mapping.default":"[', b'"schema.name-mapping.default":"x['),
    ),
    "a manifest that is none": ("-m0.avro", lambda data: b"no Avro"),
    "a manifest that is cut off": ("-m0.avro", lambda data: data[: len(data) // 2]),
    "a length behind the end": ("-m0.avro", lambda data: NEGATIVE_LENGTH),
    "a manifest that is far larger than its file": ("-m0.avro", inflated),
    "a list of manifests that is far larger than its file": ("snap-", inflated),
    "a list of manifests of records without bytes": ("snap-", endless),
    "a list of manifests that is cut off": ("snap-", lambda data: data[:-40]),
}


def changed(pool: Pool, part: str, change: Callable[[bytes], bytes]) -> None:
    """Change the file of the published table whose name has this part."""
    (name,) = [one.name for one in pool.store.list(f"{pool.config.id}/published") if part in one.name]
    data = pool.store.get(name) or b""
    new = change(data)
    assert new != data, "the damage changes the file"
    pool.store.put(name, new)


def a_published_pool(folder: Path) -> Pool:
    pool = a_local_pool(folder, {"k": [1, 2]})
    publish_iceberg(pool)
    pool.branch().append(pool.at().to_table())
    return pool


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_table_is_corrupt_for_its_next_publisher(how: str, tmp_path: Path) -> None:
    pool = a_published_pool(tmp_path)
    changed(pool, *DAMAGE[how])
    with pytest.raises(Corrupt, match=r"published/iceberg/main.*publish to another folder") as raised:
        publish_iceberg(pool)
    assert "\n" not in str(raised.value)
    assert pool.at().to_table().num_rows == 4


@pytest.mark.parametrize("number", [MAX_NUMBER, 10**18 - 1])
def test_a_number_that_no_publication_reached_is_corrupt_and_ends(number: int, tmp_path: Path) -> None:
    pool = a_published_pool(tmp_path)
    folder = f"{pool.config.id}/published/iceberg/main/metadata"
    pool.store.put(f"{folder}/v{number}.metadata.json", pool.store.get(f"{folder}/v1.metadata.json") or b"")
    pool.store.delete(f"{folder}/version-hint.text")
    with pytest.raises(Corrupt, match=f"metadata {number} was published by no lake"):
        publish_iceberg(pool)


@pytest.mark.parametrize("first", range(0, COUNT, EACH))
def test_a_table_that_was_changed_at_random_is_published_or_corrupt(first: int, tmp_path: Path) -> None:
    pool = a_published_pool(tmp_path)
    names = [one.name for one in pool.store.list(f"{pool.config.id}/published") if "metadata/" in one.name]
    sound = {name: pool.store.get(name) or b"" for name in names}
    lines: list[str] = []
    for number in range(first, min(first + EACH, COUNT)):
        rng = random.Random(number)
        name = rng.choice(names)
        change = changed_json if name.endswith(".json") else flipped
        pool.store.put(name, change(sound[name], rng) or b" ")
        try:
            publish_iceberg(pool)
        except LakeError as error:
            lines.append(str(error))
        for one in list(pool.store.list(f"{pool.config.id}/published")):
            if one.name not in sound and "metadata/" in one.name:
                pool.store.delete(one.name)
        for name, data in sound.items():
            pool.store.put(name, data)
    assert lines
    assert not [line for line in lines if "\n" in line]
