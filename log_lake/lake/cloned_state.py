"""Clones: the state with which a clone of a pool begins, and which other pools a state still needs; pure.

A clone begins like a pool whose journal is purged: with a checkpoint of one branch of the source, as its
`main`, at the same version.  So sequences, tombstones, tokens, source files and schemas keep their meaning.
The clone does not get other branches, tags, the list of removed objects and pending parts.  A reference to an
object that lies in the folder of another pool names that pool, its *home* (`ids.in_home`); an inlined object
comes along as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from rpds import HashTrieMap

from lake_core.checkpoints import SectionPart
from lake_core.history.below import TOKEN
from lake_core.history.branch_state import BranchState
from lake_core.history.checkpoint import BRANCH, BranchRow, PoolStateFormat
from lake_core.history.layered_map import LayeredMap
from lake_core.history.removal import Removed
from lake_core.history.snapshot.fixed import REFERENCE
from lake_core.history.snapshot.reference import are_inlined
from lake_core.history.snapshot.snapshot import Snapshot
from lake_core.history.state import Ingested, PoolState, ingested_as
from lake_core.ids import home_of, in_home, without_home
from lake_core.naming import MAIN
from lake_core.records.decoders import MSGPACK


def state_of_clone(state: PoolState, branch: str, *, pool_id: str) -> PoolState:
    """Returns the state with which a clone begins; `branch` is a branch of the pool with the id `pool_id`.
    `CloneFormat` writes it.

    If `pool_id` is "", it is the state of a copy, whose objects all lie in its own folder.
    """
    of = state.branches[branch]
    main = BranchState(of.tip, of.snapshot, of.tombstones, of.replaced, revealed=of.revealed)
    sources = state.sources
    if branch != MAIN:  # with those that it has from its parents
        uris = sorted({uri for (_, uri), _ in state.sources.items()})
        by_uri = {uri: ingested_as(state.branches, state.sources, branch, uri) for uri in uris}
        files = {(MAIN, uri): Ingested(s, of.tip) for uri, s in by_uri.items() if s is not None}
        sources = LayeredMap(added=HashTrieMap(files))
    return replace(
        state,
        branches=HashTrieMap({MAIN: main}),
        sources=sources,
        closed=None,
        reopened=0,
        tags=HashTrieMap(),
        removed=Removed(),
        pending=HashTrieMap(),
        inlines=bool(of.snapshot.inlined),
        homes=homes_of(of.snapshot) | {pool_id} if pool_id else frozenset(),
    )


@dataclass(frozen=True)
class CloneFormat(PoolStateFormat):
    """Writes the first checkpoint of a clone: objects without a home get the pool `source` (its id) as their home.

    If `source` is "", it writes the first checkpoint of a copy: no object has a home.  `without`: tokens that
    it leaves out, because what they committed is not on the branch.
    """

    source: str = ""
    without: frozenset[str] = frozenset()

    def parts(self, state: PoolState, *, now: float, forget: int) -> Iterator[SectionPart]:
        inlines = bool(state.branches[MAIN].snapshot.inlined)
        for part in super().parts(state, now=now, forget=forget):
            match part.section:
                case section if section == REFERENCE:
                    tables = (self._renamed(table, inlines=inlines) for table in part.tables)
                    yield replace(part, tables=tables)
                case section if section == BRANCH:
                    yield replace(part, tables=map(self._with_newest, part.tables))
                case section if section == TOKEN and self.without:
                    gone = pa.array(sorted(token.encode() for token in self.without), pa.binary())
                    yield replace(
                        part, tables=(t.filter(pc.invert(pc.is_in(t["key"], gone))) for t in part.tables)
                    )
                case _:
                    yield part

    def _name(self, name: str) -> str:
        return in_home(name, self.source) if self.source else without_home(name)

    def _renamed(self, table: pa.Table, *, inlines: bool) -> pa.Table:
        """Returns the rows of references, with the object names that the clone uses."""
        names = table["object"].to_pylist()
        inlined = are_inlined(table) if inlines else [False] * len(names)
        renamed = [name if one else self._name(name) for name, one in zip(names, inlined, strict=True)]
        place = table.schema.get_field_index("object")
        return table.set_column(place, "object", pa.array(renamed, pa.string()))

    def _with_newest(self, table: pa.Table) -> pa.Table:
        """Returns the rows of branches, with the new name of the greatest object."""
        rows = [MSGPACK.of(BranchRow).decode(value) for value in table["value"].to_pylist()]
        renamed = (msgspec.structs.replace(r, newest=self._name(r.newest) if r.newest else "") for r in rows)
        values = pa.array([msgspec.msgpack.encode(row) for row in renamed], pa.binary())
        return table.set_column(table.schema.get_field_index("value"), "value", values)


def homes_of(snapshot: Snapshot) -> frozenset[str]:
    """Returns the ids of the other pools in whose folders objects of the snapshot lie; reads the names of all
    objects."""
    return _homes(_elsewhere(snapshot))


def homes_needed(state: PoolState) -> frozenset[str]:
    """Returns the ids of the other pools whose objects a state may need: for its branches, its list of removed
    objects, or a vacuum that has not ended.

    Ask separately for the states of its tags.  Once the newest state and the states of its tags need no other
    pool, no later state does: no writer can refer again to an object that a vacuum took.
    """
    listed = (id for id, _ in state.removed.items())
    begun = state.removed.vacuumed()
    return _homes((*objects_elsewhere(state), *listed, *begun)) if state.homes else frozenset()


def objects_elsewhere(state: PoolState) -> Iterator[str]:
    """Yields the objects of branches that lie in the folders of other pools, perhaps more than once."""
    for branch in state.branches.values() if state.homes else ():
        yield from _elsewhere(branch.snapshot)


def _elsewhere(snapshot: Snapshot) -> Iterator[str]:
    for sub_pool in ("", *snapshot.sub_pools()):
        names = snapshot.table(sub_pool=sub_pool, columns=("object",))["object"]
        yield from names.filter(pc.match_substring(names, "@")).to_pylist()


def _homes(names: Iterable[str]) -> frozenset[str]:
    return frozenset(home for name in names if (home := home_of(name)))
