"""Makes the references of a rebuilt pool: one for each object that counts, with its sequence.

`rebuild_plan` decides by the footers.  If footers are gone, `ancestry` compares the records, and `rebuild_plan`
decides again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from lake_core.history import Reference
from lake_core.ids import id_seconds
from lake_core.keys import PoolKey
from lake_core.records.pools import PoolConfig
from lake_core.store import Store
from log_lake.objects.facts import read_content
from log_lake.objects.read import DataObject
from log_lake.repair.ancestry import merged_into
from log_lake.repair.rebuild_candidate import Candidate
from log_lake.repair.rebuild_plan import (
    Piece,
    Selection,
    made_of,
    merged_loads,
    select,
    sequences,
)

MAX_ANCESTRY_ROUNDS = 32
"""How often the records are compared again: each round finds the inputs of one more compaction of
compactions."""


def select_by_records(
    store: Store, pool_id: str, config: PoolConfig, candidates: list[Candidate]
) -> tuple[Selection, tuple[str, ...]]:
    """Decides which objects count.  Where footers are gone, it also compares the records.

    Returns the selection, and the objects that count as merged only because their records show it.
    """
    merged: dict[str, set[str]] = {}
    void: set[str] = set()
    selection = select(candidates)
    for _ in range(MAX_ANCESTRY_ROUNDS):
        more, rivals = _merged_unseen(store, pool_id, config, candidates, selection)
        if not more and not rivals:
            break
        for id, transaction_id in more.items():
            merged.setdefault(id, set()).add(transaction_id)
        void |= rivals
        selection = select(candidates, merged=merged, void=void)
    return selection, tuple(sorted({*merged, *(c.object for c in candidates if c.transaction_id in void)}))


def _merged_unseen(
    store: Store, pool_id: str, config: PoolConfig, candidates: list[Candidate], selection: Selection
) -> tuple[dict[str, str], set[str]]:
    """Finds objects that seem to count, but that a compaction merged through an object that cannot be read.

    Returns these objects with the compaction that holds their records; and the transactions of compactions that
    share some of their records with it.
    """
    by_id = {c.object: c for c in candidates}
    by_origin: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if selection.dark.intersection(candidate.inputs) and candidate.object not in selection.void:
            by_origin.setdefault(candidate.transaction_id, []).append(candidate)
    merged: dict[str, str] = {}
    rivals: set[str] = set()
    for transaction_id, outputs in sorted(by_origin.items(), reverse=True):  # the newest holds the most
        if transaction_id in rivals or any(o.object in merged for o in outputs):
            continue
        inputs = {id for output in outputs for id in output.inputs}
        unknown = selection.dark.intersection(inputs)
        until = max(id_seconds(id) for id in unknown)
        heirs = made_of([o.object for o in outputs], candidates)
        holders = [p for p in selection.pieces if p.candidate.object in heirs - merged.keys()]
        suspects = [
            piece
            for piece in selection.pieces
            if (piece.candidate.created <= until or piece.candidate.inputs)
            and piece.candidate.transaction_id not in rivals
            and piece.candidate.object not in merged
            and piece.candidate.object not in heirs
            and piece.candidate.sub_pool == outputs[0].sub_pool
            and any(piece.key_range.overlaps(holder.key_range) for holder in holders)
        ]
        if suspects and holders:
            loads = merged_loads(inputs - unknown, by_id)
            doubtful = {piece.candidate.object for piece in suspects}
            more, shared = merged_into(
                store,
                pool_id,
                holders,
                suspects,
                key=config.key_of(outputs[0].sub_pool),
                sound_loads=[c for id, c in loads.items() if not c.fault and id not in doubtful],
            )
            merged |= dict.fromkeys(more, transaction_id)
            rivals |= {by_id[id].transaction_id for id in shared}
    return merged, rivals


def references_of(
    store: Store,
    pool_id: str,
    config: PoolConfig,
    candidates: Sequence[Candidate],
    selection: Selection,
) -> list[Reference]:
    """Returns the references of the objects that the selection keeps."""
    loads = (p.candidate for p in selection.pieces if p.candidate.last_seq is None)
    seqs = sequences(candidates, loads)
    in_order = sorted(
        {p.candidate.object: p.candidate for p in selection.pieces}.values(),
        key=lambda c: (c.transaction_id, c.created, c.order, c.object),
    )
    ordinals = {
        one.object: ordinal
        for _, of_transaction in groupby(in_order, key=lambda c: c.transaction_id)
        for ordinal, one in enumerate(of_transaction)
    }
    references = (
        _reference(
            store,
            pool_id,
            piece,
            config.key_of(piece.candidate.sub_pool),
            seq=seqs.get(piece.candidate.transaction_id, 0),
            ordinal=ordinals[piece.candidate.object],
        )
        for piece in selection.pieces
    )
    return [reference for reference in references if reference is not None]


def _reference(
    store: Store, pool_id: str, piece: Piece, key: PoolKey, *, seq: int, ordinal: int
) -> Reference | None:
    """Returns the reference that shows the piece; None if the piece has no records."""
    one = piece.candidate
    low, high, records, columns = one.low, one.high, one.records, one.columns
    if not piece.is_whole:
        with DataObject.at(store, one.located, pool_id=pool_id) as data:
            content = read_content(data, key=key, key_range=piece.key_range, cut=True)
        if not content.records:
            return None
        low, high, records, columns = content.low, content.last + b"\0", content.records, content.columns
    return Reference(
        object=one.object,
        low=low,
        high=high,
        seq=seq if one.last_seq is None else one.last_seq,
        ordinal=ordinal,
        records=records,
        size=one.size,
        schema=one.schema,
        sub_pool=one.sub_pool,
        columns=columns,
        oldest=one.first_seq,
    )
