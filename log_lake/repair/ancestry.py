"""Finds which objects were merged into a compaction, when the objects in between cannot be read any more.

A compaction names its inputs.  If an input is gone or its footer is damaged, no file tells whether it was a
load or the output of an earlier compaction.  In the second case the objects that the earlier one merged would
count twice. The records tell which case it is, because each record of a compaction carries the sequence and the
ordinal of the object that it came from:

- If two compactions hold a record of the same sequence, ordinal and key, it is the same record.  If one holds all
  records of the other, the other was merged into it.  If it holds some of them, one of the two was never committed.
- Each sequence and ordinal stands for one object.  A load was merged if the compaction's records of one sequence
  and ordinal are exactly the records of the load.  Deletes or newer records may have removed some of them.  So if
  no load has exactly these records, a load that has these and more counts as merged.

Loads that the compaction is known to have merged are matched first.  Equal loads cannot be told apart.  If one of
them was merged and its object is gone, another one, whose records should still count, may be taken for it.

Records are compared by the fields that have the same type in both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.ranges import EVERYTHING
from lake_core.schemas.hidden import ORDINAL, SEQ, user_fields
from lake_core.store import Store
from log_lake.columns.json_text import json_lines
from log_lake.objects.read import DataObject
from log_lake.repair.rebuild_candidate import Candidate
from log_lake.repair.rebuild_plan import Piece

Hashes = npt.NDArray[np.int64]
AncestrySource = tuple[int, int]
"""The sequence and the ordinal of the object that a record came from."""


def merged_into(
    store: Store,
    pool_id: str,
    holders: Sequence[Piece],
    suspects: Iterable[Piece],
    *,
    key: PoolKey,
    sound_loads: Iterable[Candidate],
) -> tuple[list[str], list[str]]:
    """Returns the suspects whose records are all in the holders, and the compactions that share some of them.

    `holders`: the objects that count among the outputs of one compaction, and objects made from them.
    `sound_loads`: loads that this compaction is known to have merged.  Raises Corrupt, Unavailable.
    """
    merged: list[str] = []
    rivals: list[str] = []
    alike: dict[tuple[str, KeyRange | None], list[Piece]] = defaultdict(list)
    compacted: list[Piece] = []
    for suspect in suspects:
        if suspect.candidate.last_seq is not None:
            compacted.append(suspect)
            continue
        only = None if suspect.is_whole else suspect.key_range
        alike[suspect.candidate.schema, only].append(suspect)
    if compacted:
        theirs = np.concatenate([_sources(store, pool_id, holder, key) for holder in holders])
        for suspect in compacted:
            shared = np.isin(_sources(store, pool_id, suspect, key), theirs)
            if shared.any():
                (merged if shared.all() else rivals).append(suspect.candidate.object)
    others = list(sound_loads)
    for (schema, only), pieces in alike.items():
        fields = _fields(store, pool_id, pieces[0].candidate)
        groups = _by_source(store, pool_id, holders, fields, key, key_range=only or EVERYTHING)
        explained = [Piece(c, only or c.key_range) for c in others if c.schema == schema]
        for group in (explained, pieces):
            hashes = {p.candidate.object: _records(store, pool_id, p, key, fields) for p in group}
            taken = _taken(groups, hashes)
            if group is pieces:
                merged += taken
    return merged, rivals


def _taken(groups: dict[AncestrySource, Hashes], by_object: dict[str, Hashes]) -> list[str]:
    """Returns the objects whose records are those of a group; each group is used once, and removed from
    `groups`."""
    taken: dict[str, None] = {}
    for exact in (True, False):
        for id, hashes in by_object.items():
            if id in taken:
                continue
            for source, part in groups.items():
                if (len(part) == len(hashes) or not exact) and _is_part(part, hashes):
                    taken[id] = None
                    del groups[source]
                    break
    return list(taken)


def _fields(store: Store, pool_id: str, candidate: Candidate) -> pa.Schema:
    with DataObject.at(store, candidate.located, pool_id=pool_id) as data:
        return user_fields(data.schema)


def _by_source(
    store: Store,
    pool_id: str,
    holders: Sequence[Piece],
    fields: pa.Schema,
    key: PoolKey,
    *,
    key_range: KeyRange,
) -> dict[AncestrySource, Hashes]:
    """Returns the records of `holders` in the key range, as hashes of the fields that they share with `fields`;
    grouped by the object that each record came from."""
    parts: dict[AncestrySource, list[int]] = defaultdict(list)
    for holder in holders:
        with DataObject.at(store, holder.candidate.located, pool_id=pool_id) as data:
            names = _shared(data.schema, fields)
            for batch in data.batches(key_range.intersect(holder.key_range), key=key, columns=None):
                table = pa.Table.from_batches([batch])
                sources = zip(table[SEQ].to_pylist(), table[ORDINAL].to_pylist(), strict=True)
                for source, value in zip(sources, _hashed(table, names), strict=True):
                    parts[source].append(value)
    return {source: np.sort(np.array(values, np.int64)) for source, values in parts.items()}


def _records(store: Store, pool_id: str, piece: Piece, key: PoolKey, fields: pa.Schema) -> Hashes:
    """Returns the records of the piece, each as a hash of the fields that its object shares with `fields`."""
    with DataObject.at(store, piece.candidate.located, pool_id=pool_id) as data:
        return _read(data, piece, key, names=_shared(data.schema, fields), columns=None)


def _sources(store: Store, pool_id: str, piece: Piece, key: PoolKey) -> Hashes:
    """Returns the records of the piece, each as a hash of its key, sequence and ordinal alone."""
    names = [*key.names, SEQ, ORDINAL]
    with DataObject.at(store, piece.candidate.located, pool_id=pool_id) as data:
        return _read(data, piece, key, names=names, columns=names)


def _read(
    data: DataObject, piece: Piece, key: PoolKey, *, names: list[str], columns: list[str] | None
) -> Hashes:
    values: list[int] = []
    for batch in data.batches(piece.key_range, key=key, columns=columns):
        values += _hashed(pa.Table.from_batches([batch]), names)
    return np.sort(np.array(values, np.int64))


def _shared(schema: pa.Schema, fields: pa.Schema) -> list[str]:
    """Names of fields whose values print the same in both."""
    return [
        field.name
        for field in fields
        if (index := schema.get_field_index(field.name)) >= 0
        and (
            schema.field(index).equals(field, check_metadata=True)
            or (pa.types.is_integer(field.type) and pa.types.is_integer(schema.field(index).type))
        )
    ]


def _hashed(table: pa.Table, names: list[str]) -> list[int]:
    return [hash(line) for line in json_lines(table.select(names)).to_pylist()]


def _is_part(part: Hashes, whole: Hashes) -> bool:
    """Returns whether `whole` has all values of `part`, at least as often; both are sorted."""
    values, counts = np.unique(part, return_counts=True)
    low, high = np.searchsorted(whole, values, "left"), np.searchsorted(whole, values, "right")
    return bool(np.all(high - low >= counts))
