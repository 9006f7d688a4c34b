"""Lifts: the new sequences that records of a merged branch get on the branch that they were merged into.

A merge gives each write of the merged branch a new sequence: the first write gets the merge's own sequence plus
1, the next one plus 2, and so on.  The order of the writes stays.  A reference whose records all have one
sequence simply gets the new one.  An object that a compaction wrote stores the sequence of each record.  So its
reference names the lifts that a reader applies to them, in their order; there are several if the merged branch
had merged them itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lake_core.errors import Corrupt

Sequences = npt.NDArray[np.int64]


def pack(sequences: Iterable[int]) -> bytes:
    """Returns the sequences as bytes, 8 for each, little-endian."""
    return np.fromiter(sequences, dtype="<i8").tobytes()


def unpack(data: bytes) -> list[int]:
    """Returns the sequences in bytes that `pack` made."""
    unpacked: list[int] = np.frombuffer(data, dtype="<i8").tolist()
    return unpacked


@dataclass(frozen=True)
class Lift:
    """How one merge renumbers sequences: the k-th of `writes` (packed, ascending, from 1) becomes `base` + k."""

    writes: bytes
    base: int

    @cached_property
    def _known(self) -> Sequences:
        return np.frombuffer(self.writes, dtype="<i8").astype(np.int64)

    def apply(self, sequences: Sequences) -> Sequences:
        """Returns these sequences as the merge renumbers them.  Raises Corrupt for a sequence that the merge
        did not bring."""
        brought = self._known
        places = np.searchsorted(brought, sequences)
        if len(sequences) and (
            places.max(initial=0) >= len(brought) or not np.array_equal(brought[places], sequences)
        ):
            raise Corrupt(f"a sequence is none of the {len(brought)} that the merge {self.base} brought")
        return self.base + 1 + places.astype(np.int64)

    def of(self, sequence: int) -> int:
        """Returns this sequence as the merge renumbers it.  Raises Corrupt if the merge did not bring it."""
        return int(self.apply(np.array([sequence], np.int64))[0])


Lifts = Mapping[int, Lift]
"""The lifts of a pool's merges, by `base`."""


def lifted(sequences: Sequences, chain: Sequence[int], lifts: Lifts) -> Sequences:
    """Applies a reference's lifts to the sequences that an object stores.  Returns the sequences on this branch.
    Raises Corrupt."""
    for base in chain:
        lift = lifts.get(base)
        if lift is None:
            raise Corrupt(f"the lift {base} of a merge is not known")
        sequences = lift.apply(sequences)
    return sequences
