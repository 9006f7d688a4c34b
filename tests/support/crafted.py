"""Makes checkpoints with right checksums and wrong rows, as a person can who may write below one pool's folder.

Rows that the program's own types would refuse are made of plain values here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa

from lake_core import naming
from lake_core.checkpoints import ROW, CheckpointFooter, SectionPart, write_checkpoint
from lake_core.checkpoints.layout import SINCE, VERSION
from lake_core.journal import Journal
from lake_core.journal.loaded_state import RECENT
from lake_core.records import AddObject
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore

Row = dict[str, Any]
"""A row of a checkpoint: values by column."""

_OF_PART = ("section", "branch", "sub")
_BESIDE = pa.schema([field for field in ROW if field.name not in _OF_PART])


def rows_of(journal: Journal[Any, Any]) -> list[Row]:
    """Returns the rows of a checkpoint of the newest state."""
    loaded = journal.load()
    assert journal.format is not None
    recent = sorted(loaded.recent.items())
    rows = [_row({"section": RECENT, "key": id.encode(), "seq": version}) for id, version in recent]
    for part in journal.format.parts(loaded.state, now=0.0, forget=0):
        of_part = {"section": part.section, "branch": part.branch, "sub": part.sub_pool}
        rows += [of_part | row for table in part.tables for row in table.to_pylist()]
    return rows


def _row(given: Row) -> Row:
    return {"section": "", "branch": "", "sub": ""} | dict.fromkeys(_BESIDE.names) | given


def row(section: str, key: bytes, *, branch: str = "", **columns: Any) -> Row:
    """Makes a row of a section."""
    return _row({"section": section, "key": key, "branch": branch, **columns})


def write_crafted(journal: Journal[Any, Any], rows: list[Row], *, id: str) -> str:
    """Writes a checkpoint of the newest version with these rows. Returns its name."""
    name, data = crafted(journal, rows, id=id)
    journal.store.put(name, data)
    return name


def crafted(journal: Journal[Any, Any], rows: list[Row], *, id: str) -> tuple[str, bytes]:
    """Returns the name and the bytes of a checkpoint of the newest version with these rows."""
    loaded = journal.load()
    name = naming.checkpoint(journal.name, loaded.version, id)
    format = max((SINCE.get(one["section"], VERSION) for one in rows), default=VERSION)
    footer = CheckpointFooter(format, journal.name, loaded.version, id, entry_checksum=loaded.checksum)
    parts: dict[tuple[str, str, str], list[Row]] = {}
    for one in rows:
        parts.setdefault((one["section"], one["branch"], one["sub"]), []).append(
            {column: one[column] for column in _BESIDE.names}
        )
    tables = [
        SectionPart(*of_part, [pa.Table.from_pylist(sorted(those, key=_by_key), schema=_BESIDE)])
        for of_part, those in parts.items()
    ]
    store = MemoryStore()
    write_checkpoint(store, name, footer, tables)
    return name, store.get(name) or b""


def _by_key(one: Row) -> bytes:
    key: bytes = one["key"]
    return key


def craft(journal: Journal[Any, Any], change: Callable[[list[Row]], list[Row]], *, id: str) -> str:
    """Writes a checkpoint of the newest version whose rows `change` has changed. Returns its name."""
    return write_crafted(journal, change(rows_of(journal)), id=id)


def set_size(store: MemoryStore, pool: Pool, size: int) -> None:
    """Changes the pool's only entry, so that it states this size of its object. A person who can forge an object
    can forge that too."""
    journal = pool.history.journal
    entry = journal.read(1)
    assert entry is not None
    (transaction,) = entry.transactions
    actions = tuple(
        msgspec.structs.replace(action, size=size) if isinstance(action, AddObject) else action
        for action in transaction.actions
    )
    forged = msgspec.structs.replace(
        entry, transactions=(msgspec.structs.replace(transaction, actions=actions),)
    )
    store.put(naming.entry(journal.name, 1), journal.codec.encode(forged))
