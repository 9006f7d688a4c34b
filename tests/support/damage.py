"""Damages stored things so that nothing fails until the damaged rows, or the entries after the damage, are
read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lake_core import naming
from lake_core.checkpoints import ROW, CheckpointFile
from lake_core.records.codec import Codec, checksum_of
from lake_core.store import Store


def turn_a_bit(store: Store, checkpoint: str, *, section: str = "reference") -> None:
    """Turns one bit in the page with the first keys of a section."""
    groups = CheckpointFile(store, checkpoint).footer.groups
    number = next(n for n, group in enumerate(groups) if group.section == section)
    whole = store.get(checkpoint) or b""
    keys = (
        pq.ParquetFile(pa.BufferReader(whole)).metadata.row_group(number).column(ROW.get_field_index("key"))
    )
    at = keys.data_page_offset + keys.total_compressed_size - 1
    store.put(checkpoint, whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :])


def lose_and_replace(store: Store, journal: str, version: int, write: Callable[[], object]) -> None:
    """Removes the entry of a version and all later ones, lets `write` write another one there, and puts the later
    ones back."""
    behind: dict[str, bytes] = {}
    for info in list(store.list(journal)):
        number = naming.entry_version(info.name)
        mark = naming.checkpoint_version(info.name)
        hint = info.name in (naming.head(journal), naming.tail(journal))
        if hint or (number or 0) >= version or (mark or 0) >= version:
            behind[info.name] = store.get(info.name) or b""
            store.delete(info.name)
    lost = behind.pop(naming.entry(journal, version))
    write()
    assert store.get(naming.entry(journal, version)) not in (None, lost), "it was replaced"
    for name, data in behind.items():
        store.put(name, data)


def link_again(store: Store, journal: str, codec: Codec[Any]) -> None:
    """Makes each entry name the checksum of the one before it, after a test has changed one of them."""
    checksum = 0
    for info in list(store.list(journal)):
        if naming.entry_version(info.name) is None or naming.is_request(info.name):
            continue
        entry = codec.decode(store.get(info.name) or b"", name=info.name)
        if checksum:
            entry = msgspec.structs.replace(entry, previous=checksum)
        data = codec.encode(entry)
        checksum = checksum_of(data)
        store.put(info.name, data)
