"""The limits of a merge: memory in bytes, time in records; and the sizes of its output.

The `Lake` passes its `ScanLimits` down to revisions, and these to scans and compactions.  Tests pass their own,
so that a few records exercise every path of a merge.

`buffer_bytes` limits the decoded bytes that the open streams of one merge hold together.  In addition, a merge
needs memory for one window and its copy, for batches that are read ahead, and for row groups that are being
decoded: about five times as much in all.  With the defaults the process stays below 512 MB, including Python
and its libraries (170 MB).  A record that is larger than a batch is a batch of its own, so the memory of the
largest record comes on top (decision 33).
"""

from __future__ import annotations

from dataclasses import dataclass

from log_lake.objects.containers.limits import OBJECT_LIMITS, ObjectLimits


@dataclass(frozen=True)
class ScanLimits:
    """The limits for the memory of a merge and the sizes of its output; the defaults are for a process of
    512 MB."""

    buffer_bytes: int = 16 << 20
    """Decoded bytes that the open streams of a merge hold together."""

    min_share_bytes: int = 16 << 10
    """A stream may always hold a row group of this size, because its reader takes more than that in any
    case."""

    min_batch_bytes: int = 16 << 10
    """The least bytes of a batch: smaller ones would cost more than they save. With it, 2,000 streams hold
    32 MB."""

    max_batch_bytes: int = 8 << 20
    """The most decoded bytes of one batch of one stream."""

    max_batch_rows: int = 65_536
    """The most records of one batch of one stream; more would cost memory and save no time."""

    min_datafusion_rows: int = 100_000
    """The least records per object, on average, for DataFusion: with fewer it takes longer to set up than it
    saves."""

    datafusion_bytes: int = 160 << 20
    """Bytes of row groups and batches that DataFusion may hold for all inputs together, estimated from their
    footers."""

    max_datafusion_inputs: int = 256
    """The most inputs for DataFusion, which opens all inputs of a merge at once."""

    min_bulk_ratio: int = 8
    """How many times as many records as the delta the bulk must have; with fewer an ordinary merge is as cheap
    (decision 22)."""

    max_streams: int = 256
    """The most streams of one merge. If there are more objects, groups of small ones are merged first
    (`reading.merge.passes`)."""

    max_group: int = 64
    """At most this many small objects are merged into one run."""

    max_small_bytes: int = 1 << 20
    """The most stored bytes of a small object. Only small ones are grouped, so a group takes little space on
    disk."""

    max_tiny_bytes: int = 64 << 10
    """The most stored bytes of a tiny object. Tiny ones are sorted together (`reading.merge.together`, decision
    336). With 0, no object is tiny."""

    max_tiny_records: int = 4_096
    """The most records of a tiny object."""

    max_gathered_bytes: int = 2 << 20
    """The most stored bytes of the tiny objects that are read together."""

    max_gathered: int = 64
    """The most tiny objects on the store that are read together: each needs a request before the first record can
    be returned."""

    objects: ObjectLimits = OBJECT_LIMITS
    """Sizes of the row groups that loads and compactions write."""

    def batch_bytes(self, streams: int) -> int:
        """Returns how many bytes one batch may have if this many streams are open at the same time."""
        return max(self.min_batch_bytes, min(self.max_batch_bytes, self.buffer_bytes // max(1, streams)))

    def share_bytes(self, streams: int) -> int:
        """Returns the largest row group, in bytes, that a waiting stream may hold if so many streams are
        open."""
        return max(self.min_share_bytes, self.buffer_bytes // max(1, streams))


LIMITS = ScanLimits()
"""The default limits."""
