"""Offsets: where the reader of a stream's partition, such as one of a Kafka topic, continues; pure.

A load names the offsets that it read in its transaction, as a source `offsets:<stream>`.  Its `size` is the
next offset, and its `etag` is `<begin>.<id>`: the offset at which it began and the id of its transaction.  So
the offsets are committed with the records or not at all, and checkpoints keep them (decision 405).

`rebase` refuses a load if the offset at which it began is not the next offset of the newest state.  If a
partition has two readers, even one that slept for a week, exactly one of them commits each offset; the other
gets Conflict, and reads again.  Only the main branch has offsets: otherwise a merge would have to unite two
readers.  A revert leaves them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from lake_core.errors import Conflict, InvalidInput
from lake_core.history.known_sources import known_between
from lake_core.history.state import PoolState
from lake_core.naming import MAIN
from lake_core.records import Source

PREFIX = "offsets:"
END = "\x7f"
"""A text that sorts after every name of a stream, which is printable ASCII."""


def offsets_source(stream: str, begin: int, next: int, *, id: str, records: int = 0) -> Source:
    """Returns the source that says that a transaction read the offsets of the stream from `begin` to before
    `next`.  If `next` is smaller than `begin`, readers read messages again from `next`."""
    return Source(f"{PREFIX}{stream}", size=next, etag=f"{begin}.{id}", records=records)


def is_offsets(source: Source) -> bool:
    """Whether the source is a stream's offsets, and no file."""
    return source.uri.startswith(PREFIX)


def held_offsets(state: PoolState, streams: str) -> Mapping[str, Source]:
    """Returns, by stream, the newest offsets of streams whose names begin with `streams`.  Raises
    CheckpointDamaged."""
    sources = known_between(state, MAIN, PREFIX + streams, PREFIX + streams + END)
    return {uri.removeprefix(PREFIX): one.source for uri, one in sorted(sources.items())}


def check_offsets(state: PoolState, branch: str, source: Source) -> None:
    """Raises Conflict if the offsets do not begin at the next offset of the state, and InvalidInput on a branch
    other than main."""
    if branch != MAIN:
        raise InvalidInput(
            f"branch {branch!r}: offsets of a stream are kept on {MAIN} only; load into {MAIN}"
        )
    newest = state.ingested(branch, source.uri)
    if newest is not None and source.etag.partition(".")[0] != str(newest.size):
        raise Conflict(
            f"{source.uri}: another reader has committed offsets up to {newest.size:,} meanwhile; read again from "
            "there"
        )
