"""Says which version of its source a derived pool shows, and how far that is behind.

The version lies in the transaction that brought the records, as the offsets of a stream do (`history.offsets`).  So
records and version are committed together, checkpoints keep both, and of two steps from one version only the first
is committed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lake_core.errors import Denied, InvalidInput, LakeError, NotFound
from lake_core.history import PoolState
from lake_core.history.offsets import held_offsets, offsets_source
from lake_core.naming import MAIN
from lake_core.phrases import counted
from lake_core.records import Source
from lake_core.records.pools import PoolConfig
from log_lake.derived.settings import DerivePolicy, derive_policy_of
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.reverts.change import changes_records, is_maintenance
from log_lake.settings import Settings

_KIND = "derive/"
_DIGITS = 16


def stream_of(policy: DerivePolicy) -> str:
    """Returns the name under which the pool's state keeps the version of the source: made from the id of the
    source and a digest of the query."""
    digest = hashlib.sha256(policy.query.encode()).hexdigest()[:_DIGITS]
    return f"{_KIND}{policy.source}/{digest}"


def version_of_source(state: PoolState, policy: DerivePolicy) -> int:
    """Returns the version of the source that the pool shows; 0 if it was never computed, or computed by another
    query."""
    offsets = held_offsets(state, _KIND).get(stream_of(policy))
    return 0 if offsets is None else offsets.size


def moved_to(
    state: PoolState, policy: DerivePolicy, version: int, *, id: str, records: int
) -> Iterator[Source]:
    """Yields the offsets of a step: one for the version that it moves to, and a reset for each earlier
    query."""
    stream = stream_of(policy)
    streams = held_offsets(state, _KIND)
    before = streams[stream].size if stream in streams else 0
    yield offsets_source(stream, before, version, id=id, records=records)
    for other, source in streams.items():
        if other != stream and source.size:
            yield offsets_source(other, source.size, 0, id=id)


@dataclass(frozen=True)
class DerivedStanding:
    """Which version of its source a derived pool shows, and whether it can be kept.

    `version`: that version; 0 if it was never computed.  `behind`: how many entries of the source since then
    may change the pool; None if that is not known.  `fault`: why the pool cannot be kept; "" if it can.
    """

    pool: str
    source: str
    query: str
    version: int
    newest: int
    behind: int | None
    fault: str = ""

    @property
    def line(self) -> str:
        """The standing as one line for people."""
        if self.fault:
            return f"derived from {self.source}, and not kept: {self.fault}"
        if not self.version:
            return f"derived from {self.source}: not computed yet"
        if self.behind == 0:
            return f"derived from {self.source}: as of its version {self.version:,}, up to date"
        behind = "all of it" if self.behind is None else counted(self.behind, "change")
        return f"derived from {self.source}: as of its version {self.version:,}, {behind} behind"


def source_of(lake: Lake, pool: PoolConfig, policy: DerivePolicy) -> Pool:
    """The source of a derived pool.  Raises NotFound, InvalidInput (a source that cannot be followed, a cycle)."""
    pools = {one.id: one for one in lake.pools()}
    if policy.source not in pools:
        dropped = {one.pool.id: one.pool.name for one in lake.dropped_pools()}
        if policy.source in dropped:
            raise NotFound(
                f"its source {dropped[policy.source]!r} is dropped; lake restore takes it back, and the records "
                "stay as they are until then"
            )
        raise NotFound(f"its source, the pool {policy.source}, does not exist; the records stay as they are")
    source = pools[policy.source]
    check_source(source)
    seen = [pool.id]
    at: PoolConfig | None = source
    while at is not None:  # each pool once
        if at.id in seen:
            raise InvalidInput(
                f"its source {source.name!r} is derived from it: a cycle; set derive.from of one to ''"
            )
        seen.append(at.id)
        of = derive_policy_of(Settings(at.settings))
        at = None if of is None else pools.get(of.source)
    return lake.pool(source.name)


def check_source(source: PoolConfig) -> None:
    """Raises InvalidInput for a pool from which none can be derived."""
    settings = Settings(source.settings)
    if settings["age_off"]:
        raise InvalidInput(
            f"pool {source.name!r} has age_off, which hides records without a transaction; use expire.age in place "
            "of it"
        )
    if names := [name for name in ("keep.where", "keep.by") if settings[name]]:
        raise InvalidInput(
            f"pool {source.name!r} has {names[0]}, which hides records without a transaction; write the condition "
            "into the query (WHERE) in place of it"
        )


def standing_of(lake: Lake, pool: Pool) -> DerivedStanding | None:
    """The standing of a derived pool, by its state and the entries of its source; None for another pool.

    Raises Unavailable, Corrupt.
    """
    policy = derive_policy_of(pool.settings)
    if policy is None:
        return None
    version = version_of_source(pool.history.load_open().state, policy)
    try:
        source = source_of(lake, pool.config, policy)
        newest = source.history.load_open().version
    except (NotFound, InvalidInput, Denied) as error:
        return DerivedStanding(
            pool.name, _name_of(lake, policy.source), policy.query, version, 0, None, str(error)
        )
    behind = _behind(source, version, newest)
    return DerivedStanding(pool.name, source.name, policy.query, version, newest, behind)


def _name_of(lake: Lake, id: str) -> str:
    names: Mapping[str, str] = {one.pool.id: one.pool.name for one in lake.dropped_pools()}
    names = {**names, **{one.id: one.name for one in lake.pools()}}
    return names.get(id, id)


def _behind(source: Pool, version: int, newest: int) -> int | None:
    if not version or version > newest:
        return None
    try:
        entries = source.history.journal.between(version, newest)
        return sum(
            any(
                one.branch == MAIN and (changes_records(one) or not is_maintenance(one))
                for one in entry.transactions
            )
            for _, entry in entries
        )
    except LakeError:  # purged: it will be computed whole
        return None


def in_order(pools: Sequence[PoolConfig]) -> list[PoolConfig]:
    """Returns the derived ones among the pools, each after its source; pools of equal depth by name."""
    policies = {one.id: derive_policy_of(Settings(one.settings)) for one in pools}
    of = {id: policy.source for id, policy in policies.items() if policy is not None}
    return sorted((one for one in pools if one.id in of), key=lambda one: (depth_of(one.id, of), one.name))


def depth_of(pool: str, sources: Mapping[str, str]) -> int:
    """Returns how many derivations lie between a pool and one that is not derived.  `sources`: the source of each
    derived pool."""
    steps = 0
    while pool in sources and steps <= len(sources):  # a cycle ends it too
        pool, steps = sources[pool], steps + 1
    return steps
