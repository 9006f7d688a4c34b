"""Damage to a checkpoint that nobody notices before the damaged rows are asked for."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from lake_core.checkpoints import ROW, CheckpointFile
from lake_core.store import Store


def turn_a_bit(store: Store, checkpoint: str, *, section: str = "reference") -> None:
    """Turn one bit in the page that holds the first keys of a section."""
    groups = CheckpointFile(store, checkpoint).footer.groups
    number = next(n for n, group in enumerate(groups) if group.section == section)
    whole = store.get(checkpoint) or b""
    keys = (
        pq.ParquetFile(pa.BufferReader(whole)).metadata.row_group(number).column(ROW.get_field_index("key"))
    )
    at = keys.data_page_offset + keys.total_compressed_size - 1
    store.put(checkpoint, whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :])
