"""Finds receipts of erasures that are lost or cannot be read: part of `lake fsck`.

An erasure writes its receipt first, and every run of the agent resumes it.  If the receipt is lost, no agent
finishes the erasure: its deletes hide the records, but their bytes stay.  The deletes and the transactions of an
erasure name it.  If an erasure is done and its entries are purged, only the receipt is left, so its loss cannot
be seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

import msgspec

from lake_core import naming
from lake_core.errors import Corrupt
from lake_core.history.state import PoolState
from lake_core.ids import ID_LENGTH
from lake_core.records.decoding import decoded_json
from lake_core.records.pools import PoolConfig
from lake_core.store import Store
from log_lake.repair.finding import Finding, finding

_OF_ERASURE = re.compile(rf"erasure ([0-9A-Za-z]{{{ID_LENGTH}}})(?:$|: )")


class _Receipt(msgspec.Struct):
    """The fields of every receipt, whatever its format."""

    format: int
    id: str


def erasures_of(text: str) -> set[str]:
    """Returns the id of the erasure that a message or a reason names, as a set; empty if it names none."""
    match = _OF_ERASURE.match(text)
    return {match[1]} if match else set()


def lost_receipts(store: Store, config: PoolConfig, state: PoolState, named: Set[str]) -> Iterator[Finding]:
    """Yields a finding for each receipt that is missing or damaged; `named` are erasures that the entries of the
    journal name.

    The state is read before the receipts are listed: an erasure writes its receipt before anything else.
    """
    ids = set(named)
    for branch in state.branches.values():
        for tombstone in (*branch.tombstones.values(), *branch.settled.values()):
            ids |= erasures_of(tombstone.reason)
    for info in list(store.list(naming.erasures(config.id))):
        try:
            ids.discard(decoded_json(store.get(info.name) or b"", _Receipt, name=info.name).id)
        except Corrupt as error:
            ids.discard(info.name.rpartition("/")[2].removesuffix(".json"))
            what = f"the receipt of an erasure cannot be read: {error}"
            yield finding("receipt_unreadable", pool=config.name, where=info.name, what=what)
    for id in sorted(ids):
        what = f"the receipt of erasure {id} is not there: no agent goes on with it, and nothing proves it"
        yield finding("receipt_missing", pool=config.name, where=naming.erasure(config.id, id), what=what)
