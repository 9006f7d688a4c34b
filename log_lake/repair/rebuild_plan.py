"""Decides which of a pool's data objects count when there is no journal; pure.

A compaction names the objects that it merged (`origin.inputs`) and, in each output, the keys that the output
covers (`partition`).  So an input counts only at keys that no sound output covers.  If an output is damaged,
the inputs replace it there.  An output may itself be an input of a later compaction; the same rule holds for
it.

If two compactions merged the same object at the same keys, one of them was never committed.  The one that
counts is, in this order: the one whose outputs were merged later, which proves that it was committed; the one
with more inputs that cannot be read any more; the one without damage; the newer one, which was run again after
a crash.  The outputs of the other one are void.  So are the outputs of a piece that was divided by bucket if one
of them is lost and the inputs are there (`rebuild_candidate`).

No object says when it was committed.  Records of compactions carry their sequence (`_seq`).  So the sequence of
a load is placed between those sequences, by the time in the ids of the merged objects.  Loads of one second
have the order in which the store got their files, if the store says it.

If the clock of a writer was ahead, the store got the object before the time in its id; then the store's time
counts.  `rebuild_late` finds the loads whose age the two times tell differently (decision 492).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from lake_core.ids import id_seconds
from lake_core.keys import KeyRange
from lake_core.records.transactions import MAX_TRANSACTIONS, sequence
from log_lake.repair.rebuild_candidate import Candidate, dismissed

VERSIONS_APART = 1_000_000
"""The rebuilt history begins after a multiple of this many versions, above every version that the objects tell.  A
program that still has the old journal open writes at a lower version, which counts as purged."""


@dataclass(frozen=True)
class Piece:
    """A part of an object that counts: all of it, or the keys of a range."""

    candidate: Candidate
    key_range: KeyRange

    @property
    def is_whole(self) -> bool:
        """Whether all records of the object count."""
        return self.key_range == self.candidate.key_range


@dataclass(frozen=True)
class PastCompaction:
    """A compaction of the lost journal, as far as its outputs describe it."""

    transaction_id: str
    inputs: frozenset[str]
    outputs: tuple[Candidate, ...]

    @cached_property
    def extents(self) -> dict[str, KeyRange]:
        """The keys that each output covers.

        Outputs whose partitions overlap were written without partitions; then each covers the keys that it holds.
        """
        by_low = sorted(
            {o.siblings or o.object: o for o in self.outputs}.values(), key=lambda o: o.partition.low
        )
        apart = all(not one.partition.overlaps(two.partition) for one, two in pairwise(by_low))
        return {o.object: o.partition if apart else o.key_range for o in self.outputs}


@dataclass(frozen=True)
class Selection:
    """The objects that count, and why others do not.

    - `void`: sound objects of compactions that were never committed, because another one replaced the same
      objects.
    - `lost`: damaged objects whose records no other object holds.
    - `healed`: damaged objects whose records other objects hold.
    - `missing`: ids that compactions name as inputs and that are not there.
    - `dark`: damaged or missing inputs whose own inputs are unknown.
    """

    pieces: tuple[Piece, ...]
    superseded: tuple[str, ...]
    void: tuple[str, ...]
    lost: tuple[Candidate, ...]
    healed: tuple[Candidate, ...]
    missing: tuple[str, ...]
    dark: frozenset[str]


def select(
    candidates: Sequence[Candidate],
    *,
    merged: Mapping[str, Collection[str]] | None = None,
    void: Collection[str] = (),
) -> Selection:
    """Decides which objects of a pool count, and returns them.

    `merged`: objects that are known to be merged by compactions although these do not name them, with the ids
    of their transactions.  `void`: transactions of compactions that do not count.
    """
    return _Choice(candidates, merged or {}, void).selection()


class _Choice:
    def __init__(
        self, candidates: Sequence[Candidate], merged: Mapping[str, Collection[str]], void: Collection[str]
    ) -> None:
        self._by_id = {c.object: c for c in candidates}
        self._dismissed = dismissed(candidates)
        outputs: dict[str, list[Candidate]] = defaultdict(list)
        for candidate in candidates:
            if candidate.inputs and candidate.object not in self._dismissed:
                outputs[candidate.transaction_id].append(candidate)
        self._origins = [
            PastCompaction(id, frozenset(c for o in created for c in o.inputs), tuple(created))
            for id, created in sorted(outputs.items(), reverse=True)
        ]
        self._accepted = self._accept(void)
        self._made_by = {o.object: origin for origin in self._accepted for o in origin.outputs}
        self._claims: dict[str, list[PastCompaction]] = defaultdict(list)
        for origin in self._accepted:
            unnamed = (id for id, by in merged.items() if origin.transaction_id in by)
            for id in origin.inputs.union(unnamed):
                self._claims[id].append(origin)
        self._covered: dict[str, list[KeyRange]] = {}

    def _accept(self, known_void: Collection[str]) -> list[PastCompaction]:
        """Returns the compactions that count; no two of them merged the same object at the same keys."""
        merged_later = {id for origin in self._origins for id in origin.inputs}

        def rank(origin: PastCompaction) -> tuple[bool, bool, int, bool]:
            proven = any(o.object in merged_later for o in origin.outputs)
            gone = sum(1 for id in origin.inputs if id not in self._by_id or self._by_id[id].fault)
            damaged = [bool(o.fault) for o in origin.outputs]
            return not proven, all(damaged), -gone, any(damaged)

        accepted: list[PastCompaction] = []
        taken: dict[str, list[PastCompaction]] = defaultdict(list)
        for origin in sorted(self._origins, key=rank):
            rivals = {other.transaction_id: other for id in origin.inputs for other in taken[id]}
            if origin.transaction_id in known_void or any(_share_keys(origin, o) for o in rivals.values()):
                continue
            accepted.append(origin)
            for id in origin.inputs:
                taken[id].append(origin)
        while True:  # what was made of void outputs is void; each round takes one away
            sound_outputs = {o.object for origin in accepted for o in origin.outputs}
            void = {o.object for origin in self._origins for o in origin.outputs} - sound_outputs
            sound = [origin for origin in accepted if void.isdisjoint(origin.inputs)]
            if len(sound) == len(accepted):
                return accepted
            accepted = sound

    def selection(self) -> Selection:
        void = {o.object for origin in self._origins if origin not in self._accepted for o in origin.outputs}
        void |= {id for id in self._dismissed if not self._by_id[id].fault}
        pieces: list[Piece] = []
        superseded: list[str] = []
        lost: list[Candidate] = []
        healed: list[Candidate] = []
        for candidate in self._by_id.values():
            if candidate.object in void:
                continue
            if candidate.fault:
                (healed if self._is_healed(candidate) else lost).append(candidate)
                continue
            left = without([candidate.key_range], self._covers_of(candidate.object))
            pieces += [Piece(candidate, key_range) for key_range in left]
            if not left:
                superseded.append(candidate.object)
        named = {id for origin in self._origins for id in origin.inputs}
        return Selection(
            tuple(pieces),
            tuple(superseded),
            tuple(sorted(id for id in void if not self._by_id[id].fault)),
            tuple(lost),
            tuple(healed),
            tuple(sorted(named - self._by_id.keys())),
            frozenset(id for id in named if id not in self._by_id or not self._by_id[id].is_known),
        )

    def _covers_of(self, id: str) -> list[KeyRange]:
        """Returns the ranges of keys in which other objects hold the records of this object."""
        covers = self._covered.get(id)
        if covers is None:
            self._covered[
                id
            ] = []  # a cycle is impossible, since an input is older; damaged footers may say one
            covers = [covered for origin in self._claims[id] for covered in self._held_by(origin)]
            self._covered[id] = covers
        return covers

    def _held_by(self, origin: PastCompaction) -> Iterable[KeyRange]:
        """Returns the keys at which the compaction's records exist: those that its sound outputs cover, and those
        of objects that were made of its damaged outputs."""
        for output in origin.outputs:
            extent = origin.extents[output.object]
            if not output.fault:
                yield extent
            else:
                inner = (extent.intersect(covered) for covered in self._covers_of(output.object))
                yield from (shared for shared in inner if not shared.empty)

    def _is_healed(self, candidate: Candidate) -> bool:
        """Returns whether others hold the records of a damaged object: objects made of it, or those that it was
        made of."""
        if candidate.object in self._dismissed:
            return True
        if not candidate.is_known:  # nothing tells its keys
            results = [o for origin in self._claims[candidate.object] for o in origin.outputs]
            return bool(results) and all(not o.fault or (o.is_known and self._is_healed(o)) for o in results)
        origin = self._made_by.get(candidate.object)
        extent = candidate.key_range if origin is None else origin.extents[candidate.object]
        left = without([extent], self._covers_of(candidate.object))
        if not left or origin is None or candidate.siblings:  # siblings replaced the inputs
            return not left
        return all(self._is_there(id, left) for id in origin.inputs)

    def _is_there(self, id: str, ranges: list[KeyRange]) -> bool:
        candidate = self._by_id.get(id)
        if candidate is None:
            return False
        return not candidate.fault or (candidate.is_known and self._is_healed(candidate))


def _share_keys(one: PastCompaction, two: PastCompaction) -> bool:
    return any(a.overlaps(b) for a in one.extents.values() for b in two.extents.values())


def without(ranges: Sequence[KeyRange], covers: Iterable[KeyRange]) -> list[KeyRange]:
    """Returns the parts of `ranges` that lie in none of the ranges of `covers`."""
    left = list(ranges)
    for cover in covers:
        cut: list[KeyRange] = []
        for one in left:
            before = KeyRange(one.low, cover.low if one.high is None else min(one.high, cover.low))
            after = None if cover.high is None else KeyRange(max(one.low, cover.high), one.high)
            cut += [part for part in (before, after) if part is not None and not part.empty]
        left = cut
    return left


def sequences(candidates: Sequence[Candidate], loads: Iterable[Candidate]) -> dict[str, int]:
    """Returns the sequence of each load that counts, by transaction.  It lies between the sequences that
    compactions tell.

    A load counts as newer than another load, whose sequence a compaction tells, if its last object is newer.
    """
    anchors = sorted(_anchors(candidates))
    moments = _moments(loads)
    # without compactions each load gets a version; between them the steps must be small
    step = 1 if anchors else MAX_TRANSACTIONS
    by_transaction: dict[str, int] = {}
    newest, passed = 0, 0
    for transaction_id, moment in sorted(moments.items(), key=lambda item: item[1]):
        while passed < len(anchors) and anchors[passed][0] <= moment:
            newest = max(newest, anchors[passed][1])
            passed += 1
        newest += step
        by_transaction[transaction_id] = newest
    return by_transaction


Moment = tuple[float, int, str]
"""When a transaction wrote its last object: the second, the order in it if known, and the id."""


def _moments(loads: Iterable[Candidate]) -> dict[str, Moment]:
    """Returns the moment of each transaction."""
    moments: dict[str, Moment] = {}
    for load in loads:
        moment = (load.created, load.order, load.transaction_id)
        moments[load.transaction_id] = max(moments.get(load.transaction_id, moment), moment)
    return moments


def _anchors(candidates: Sequence[Candidate]) -> Iterator[tuple[Moment, int]]:
    """Yields moments with their sequence, as compactions tell it: of each load that they merged, or only of the
    newest.

    If there are as many sequences as loads, they belong together in their order.  Otherwise all records of some
    load were deleted or replaced by newer ones, and nothing tells which load it was.
    """
    by_id = {c.object: c for c in candidates}
    origins: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        if candidate.sequences and candidate.inputs:
            origins[candidate.transaction_id].append(candidate)
    for outputs in origins.values():
        told = sorted({sequence for output in outputs for sequence in output.sequences})
        moments = sorted(_moments(merged_loads(outputs[0].inputs, by_id).values()).values())
        if len(told) == len(moments):
            yield from zip(moments, told, strict=True)
        else:
            newest = moments[-1][0] if moments else max(id_seconds(id) for id in outputs[0].inputs)
            yield (newest, 0, ""), told[-1]


def unordered(candidates: Sequence[Candidate], pieces: Iterable[Piece]) -> tuple[str, ...]:
    """Returns the loads that count, but may be older or newer than a compaction's records, because nothing tells
    which.

    This happens if the compaction merged a load whose object is gone: then nothing tells when the records of
    that load were written.  A load is in doubt if it has the same keys, and if an input of the compaction is
    newer.
    """
    by_id = {c.object: c for c in candidates}
    counted = list(pieces)
    loads = [p for p in counted if p.candidate.last_seq is None and not p.candidate.sub_pool]
    doubtful = set()
    for piece in counted:
        one = piece.candidate
        moments = _moments(merged_loads(one.inputs, by_id).values())
        told = {s for c in candidates if c.transaction_id == one.transaction_id for s in c.sequences}
        if one.sub_pool or not one.inputs or not told or len(told) == len(moments):
            continue
        until = max(by_id[id].created if id in by_id else id_seconds(id) for id in one.inputs)
        doubtful |= {
            load.candidate.object
            for load in loads
            if load.candidate.created <= until and load.key_range.overlaps(piece.key_range)
        }
    return tuple(sorted(doubtful))


def merged_loads(ids: Iterable[str], by_id: Mapping[str, Candidate]) -> dict[str, Candidate]:
    """Returns the loaded objects among these ids, and those that were merged into objects of these ids, as far as
    known."""
    loads: dict[str, Candidate] = {}
    left, seen = list(ids), set()
    while left:  # bounded by the objects there are
        candidate = by_id.get(left.pop())
        if candidate is None or candidate.object in seen:
            continue
        seen.add(candidate.object)
        if candidate.inputs:
            left += candidate.inputs
        elif candidate.is_known:
            loads[candidate.object] = candidate
    return loads


def made_of(ids: Iterable[str], candidates: Iterable[Candidate]) -> set[str]:
    """Returns the objects of these ids, and all that compactions made of them."""
    outputs: dict[str, list[str]] = defaultdict(list)
    for candidate in candidates:
        for id in candidate.inputs:
            outputs[id].append(candidate.object)
    objects: set[str] = set()
    left = list(ids)
    while left:  # bounded by the objects there are
        id = left.pop()
        if id not in objects:
            objects.add(id)
            left += outputs[id]
    return objects


def first_version(newest: int) -> int:
    """Returns the version on which the rebuilt history begins, above every sequence."""
    return (newest // sequence(1) // VERSIONS_APART + 1) * VERSIONS_APART
