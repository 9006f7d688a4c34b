"""The limits of a merge: memory in bytes, time in records; and the sizes of its output.

The `Lake` passes its `ScanLimits` down to revisions, and these to scans and compactions.  Tests pass their own, so
that few records take every way through a merge.

`buffer_bytes` is what the open streams of one merge hold decoded, together.  Around it a merge keeps one window and
its copy, the batches that are read ahead, and the row groups that are being decoded: about five times as much in
all.  With the defaults the process stays below 512 MB, Python and its libraries (170 MB) included.  A record that
is larger than a batch is a batch of its own, so the largest record comes on top (decision 33).
"""

from __future__ import annotations

from dataclasses import dataclass

from log_lake.objects.containers.limits import OBJECT_LIMITS, ObjectLimits


@dataclass(frozen=True)
class ScanLimits:
    """Defaults are for a process of 512 MB."""

    buffer_bytes: int = 16 << 20
    """Decoded bytes that the open streams of a merge hold together."""

    min_share_bytes: int = 16 << 10
    """A stream may always hold a row group of this size, since its reader takes more than that anyway."""

    min_batch_bytes: int = 16 << 10
    """Batches are not smaller, since that would cost more than it saves; 2,000 streams then hold 32 MB."""

    max_batch_bytes: int = 8 << 20
    """Decoded bytes of one batch of one stream."""

    max_batch_rows: int = 65_536
    """Records of one batch of one stream; more cost memory and save no time."""

    min_datafusion_rows: int = 100_000
    """With fewer records an object, on average, DataFusion takes longer to set up than it saves."""

    datafusion_bytes: int = 160 << 20
    """Bytes of row groups and batches that DataFusion may hold of all inputs together, by the footers."""

    max_datafusion_inputs: int = 256
    """DataFusion opens all inputs of a merge at once."""

    min_bulk_ratio: int = 8
    """The bulk holds at least this many times the records of the delta; below that ratio a merge is as cheap
    (decision 22)."""

    max_streams: int = 256
    """Streams of one merge; with more objects, small ones are merged by groups first (`reading.merge.passes`)."""

    max_group: int = 64
    """At most this many small objects are merged into one run."""

    max_small_bytes: int = 1 << 20
    """Stored bytes of a small object; only small ones are grouped, so that a group takes little space on disk."""

    max_tiny_bytes: int = 64 << 10
    """Stored bytes of a tiny object; tiny ones are sorted together (`reading.merge.together`, decision 336).
    0: they are read as others are."""

    max_tiny_records: int = 4_096
    """Records of a tiny object."""

    max_gathered_bytes: int = 2 << 20
    """Stored bytes of tiny objects that are read together."""

    max_gathered: int = 64
    """Tiny objects on the store that are read together: each takes a request before the first record."""

    objects: ObjectLimits = OBJECT_LIMITS
    """Sizes of the row groups that loads and compactions write."""

    def batch_bytes(self, streams: int) -> int:
        """Bytes of one batch if this many streams are open at the same time."""
        return max(self.min_batch_bytes, min(self.max_batch_bytes, self.buffer_bytes // max(1, streams)))

    def share_bytes(self, streams: int) -> int:
        """The largest row group, in bytes, that a waiting stream may hold if this many are open."""
        return max(self.min_share_bytes, self.buffer_bytes // max(1, streams))


LIMITS = ScanLimits()
"""The defaults."""
