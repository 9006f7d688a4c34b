"""Shows and sets, for people, the offsets at which a pool continues in its topics.

Setting offsets is a transaction without records: from its version on, readers continue there.  It never happens
automatically.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lake_core.errors import InvalidInput
from lake_core.history import Draft
from lake_core.history.offsets import held_offsets, offsets_source
from lake_core.naming import MAIN
from lake_core.phrases import choices, counted
from lake_core.records import Consume, Source
from log_lake.kafka.plan import KIND, Partition, SeenPartition, partition_of, plan_reads
from log_lake.lake.pool import Pool

FORM = "TOPIC[:PARTITION]=OFFSET, where OFFSET may also be earliest or latest"

_WISH = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]+)(?::(?P<number>[0-9]{1,9}))?=(?P<at>[0-9]{1,18}|earliest|latest)"
)


@dataclass(frozen=True)
class PartitionOffset:
    """Where a pool continues in a partition: the `next` offset, and the offset at which its last load began."""

    partition: Partition
    next: int
    begun: int
    records: int


@dataclass(frozen=True)
class Wish:
    """What a person asks for: the offset at which a partition is to be read next. `number` is that of the
    partition, None for all of the topic."""

    topic: str
    number: int | None
    at: str


def wish_of(text: str) -> Wish:
    """Reads such a wish from a text in the form of `FORM`. Raises InvalidInput."""
    match = _WISH.fullmatch(text)
    if match is None:
        raise InvalidInput(f"--set {text!r}: use {FORM}")
    return Wish(match["topic"], None if match["number"] is None else int(match["number"]), match["at"])


def positions_of(pool: Pool) -> list[PartitionOffset]:
    """Returns the offsets that the newest version of the pool has.  Raises NotFound, Unavailable, Corrupt."""
    positions = []
    for stream, source in held_offsets(pool.at(MAIN).state, KIND).items():
        partition, (begun, _, _) = partition_of(stream), source.etag.partition(".")
        if partition is not None and begun.isdecimal():
            positions.append(PartitionOffset(partition, source.size, int(begun), source.records))
    return sorted(positions, key=lambda one: one.partition)


def settled(wishes: Iterable[Wish], seen: Sequence[SeenPartition]) -> dict[Partition, int]:
    """Returns the next offset of each partition that the wishes name; pure.  Raises InvalidInput."""
    offsets: dict[Partition, int] = {}
    for wish in wishes:
        of_topic = [one for one in seen if one.partition.topic == wish.topic]
        if not of_topic:
            topics = sorted({one.partition.topic for one in seen})
            raise InvalidInput(
                f"topic {wish.topic!r} is not one of the pool's ingest.source: {choices(topics)}"
            )
        chosen = [one for one in of_topic if wish.number in (None, one.partition.number)]
        if not chosen:
            raise InvalidInput(f"topic {wish.topic} has no partition {wish.number}: 0 to {len(of_topic) - 1}")
        for one in chosen:
            at = one.low if wish.at == "earliest" else one.high if wish.at == "latest" else int(wish.at)
            if not one.low <= at <= one.high:
                raise InvalidInput(f"{one.partition}: has offsets from {one.low} to {one.high}, not {at}")
            offsets[one.partition] = at
    return offsets


def left_in_doubt(
    seen: Sequence[SeenPartition],
    positions: Mapping[str, Source],
    offsets: Mapping[Partition, int],
    *,
    is_empty: bool,
) -> list[Partition]:
    """Returns the partitions that would wrongly be read as new once `offsets` are set, because these do not name
    them; pure.

    The arguments are those of `plan_reads`.
    """
    then = dict(positions)
    for partition, at in offsets.items():
        then[partition.stream] = offsets_source(partition.stream, at, at, id="")
    before, after = (
        {fault.partition for fault in plan_reads(seen, one, is_empty=is_empty).faults}
        for one in (positions, then)
    )
    return sorted(before - after - offsets.keys())


def set_positions(pool: Pool, seen: Sequence[SeenPartition], offsets: dict[Partition, int]) -> int | None:
    """Sets the next offset of these partitions in one transaction.  Returns its version, or None if all have these
    offsets already.

    Raises InvalidInput if other partitions would then be read from their beginnings, Conflict if a reader
    commits meanwhile, NotFound, OutcomeUnknown, Unavailable.
    """
    branch = pool.branch(MAIN)
    loaded = branch.history.load_open()
    newest = held_offsets(loaded.state, KIND)
    is_empty = loaded.state.branches[MAIN].snapshot.records == 0
    if left := left_in_doubt(seen, newest, offsets, is_empty=is_empty):
        raise InvalidInput(
            f"{pool.name}: {choices([str(one) for one in left], 'and')} would then be read from the beginning, and "
            "it is in doubt which of their messages are loaded; name them in the same command, too"
        )
    id = branch.context.ids.new()
    sources = []
    for partition, at in sorted(offsets.items()):
        source = newest.get(partition.stream)
        if source is None or source.size != at:
            sources.append(offsets_source(partition.stream, source.size if source else at, at, id=id))
    if not sources:
        return None
    draft = Draft(
        id,
        MAIN,
        loaded.version,
        branch.context.author,
        (Consume(tuple(sources)),),
        message=f"set offsets of {counted(len(sources), 'partition')}",
        metadata=branch.context.metadata,
    )
    return branch.commit_draft(draft, does="sets offsets").version
