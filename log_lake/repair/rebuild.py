"""`lake rebuild`: a new journal for a pool, made of its data objects alone.

`plan_rebuild` reads every object to its last record and decides what counts (`rebuild_plan`); it writes
nothing.  `rebuild` writes a checkpoint that holds the references, then a fence at its version, then the entry
of the list of pools, if there is none.  So the history begins at that version, as after a purge, and all
sequences that records of compactions carry lie below it.  If a rebuild is killed, `lake fsck` finds what it
left.

If no part of the old journal is left, the pool keeps its id and its objects.  If any entry, mark or request of
it is left, the old folder stays as it is: the new pool has a new id, and copies of the objects that count.

The objects do not hold tombstones, tokens, ingested source files, branches or settings, nor show which loads
were committed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa
from rpds import HashTrieMap, HashTrieSet

from lake_core import naming
from lake_core.catalog.state import PoolsState
from lake_core.errors import (
    AlreadyExists,
    Conflict,
    InvalidInput,
    JournalLost,
    NotFound,
    ObjectMissing,
    Unavailable,
)
from lake_core.history import History, PoolState, Reference, Snapshot
from lake_core.history.activity import ActivityNote
from lake_core.history.branch_state import BranchState
from lake_core.ids import is_id
from lake_core.journal import LoadedState, put_fence, put_gate, write_state
from lake_core.journal.recent import Recent
from lake_core.keys import PoolKey
from lake_core.naming import MAIN
from lake_core.phrases import counted, listed
from lake_core.records.pools import PoolConfig
from lake_core.schemas.hidden import DELETED
from lake_core.schemas.rule import rule_of
from lake_core.schemas.schema import stored_schema
from lake_core.store import ObjectInfo, Store
from lake_core.values.types import is_sum
from log_lake.combine.declared import check_rule
from log_lake.lake import Lake
from log_lake.lake.copies import copy_object
from log_lake.lake.given_up import give_up
from log_lake.repair.check_pool import CheckProgress
from log_lake.repair.history_left import has_history
from log_lake.repair.rebuild_candidate import Candidate
from log_lake.repair.rebuild_late import contradicted
from log_lake.repair.rebuild_names import lost_names, names_left
from log_lake.repair.rebuild_objects import read_candidates, with_key
from log_lake.repair.rebuild_plan import Selection, first_version, unordered
from log_lake.repair.rebuild_references import references_of, select_by_records
from log_lake.stores.guard import GuardedStore

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wanted:
    """What the user asks of the rebuilt pool.  For a part that is not given, the list of pools or the objects
    decide."""

    name: str = ""
    key: PoolKey | None = None
    kind: str | None = None
    aggregates: Mapping[str, str] | None = None


@dataclass(frozen=True)
class RebuildPlan:
    """The plan of a rebuild: `references` at `version`, of the objects in the folder of `source_id`.

    - `is_listed`: the list of pools has the pool, and keeps it unchanged.
    - `damaged`: objects whose records cannot be used; `lost`: the damaged objects that no other object replaces.
    - `unseen`: objects that no other object replaces, and that the store did not give; they may be sound.
    - `superseded`: inputs that compactions replaced.
    - `void`: outputs of a compaction that was never committed, because another one replaced the same objects.
    - `guessed`: objects that count as merged only because their records show it.
    - `begins_list`: the list of pools is lost, and the rebuild begins a new one.
    - `unordered`: loads that have keys in common with merged records or other loads, if nothing shows which of
      the two is older.
    - `inlined`: by id, the bytes of objects that are in the old journal.
    - `stored`, `added`: the stored names of fields, and the types of added ones, as far as the old journal tells.
    - `notes`: what else is lost or doubtful, a line each.
    """

    source_id: str
    config: PoolConfig
    is_listed: bool
    version: int
    references: tuple[Reference, ...]
    schemas: dict[str, bytes]
    superseded: tuple[str, ...]
    void: tuple[str, ...]
    guessed: tuple[str, ...]
    damaged: tuple[Candidate, ...]
    lost: tuple[Candidate, ...]
    notes: tuple[str, ...]
    unordered: tuple[str, ...] = ()
    begins_list: bool = False
    inlined: Mapping[str, bytes] = field(default_factory=dict)
    stored: HashTrieMap[str, str] = field(default_factory=HashTrieMap)
    added: HashTrieMap[str, str] = field(default_factory=HashTrieMap)
    unseen: tuple[str, ...] = ()

    @property
    def copies(self) -> bool:
        """Whether the new pool has a folder of its own, with copies of the objects."""
        return self.config.id != self.source_id

    @property
    def records(self) -> int:
        """How many records the pool and its sub-pools will have."""
        return sum(r.records for r in self.references)

    @property
    def objects(self) -> list[str]:
        """Ids of the objects that the references show."""
        return list(dict.fromkeys(r.object for r in self.references))


def plan_rebuild(
    lake: Lake, pool: str, options: Wanted, *, progress: CheckProgress = lambda what, count: None
) -> RebuildPlan:
    """Returns the plan to rebuild the pool (its name or id).

    Raises NotFound, AlreadyExists (a name that is in use), InvalidInput (the user must give an option),
    Unavailable.
    """
    try:
        state, begins_list = lake.catalog.load().state, False
    except JournalLost:
        state, begins_list = PoolsState(), True
    catalogued = state.pools.get(state.names.get(pool, pool))
    source_id = catalogued.id if catalogued is not None else pool
    store = GuardedStore(lake.store)  # no footer that was kept before
    if catalogued is None and (not is_id(pool) or not _any(store.list(source_id))):
        raise NotFound(
            f"pool {pool!r} does not exist; name a pool of lake ls, or the id of a folder of the lake"
        )
    if catalogued is not None and catalogued.clone is not None:
        of = catalogued.clone
        raise InvalidInput(
            f"pool {pool!r} is a clone, and many of its objects lie in the folders of other pools: make another "
            f"clone (lake clone {of.name} NEW --at {naming.clone_tag(source_id)}), and load what came since again"
        )
    in_place = not options.name or catalogued is None
    if has_history(store, source_id):
        if not options.name:
            raise InvalidInput(
                f"pool {pool!r} still has parts of its journal; name the pool to make: --name NEW"
            )
        in_place = False
    if catalogued is None and not options.name:
        raise InvalidInput(f"the list of pools does not have {pool}; name the pool to make: --name NEW")
    if options.name and options.name in state.names:
        raise AlreadyExists(f"pool {options.name!r} exists already")
    readable, schemas = read_candidates(store, source_id, progress)
    if not readable:
        raise NotFound(f"{source_id}/data: no data object to rebuild the pool from")
    notes: list[str] = []
    id = source_id if in_place else lake.context.ids.new()
    config = _config(catalogued, readable, schemas, options, id=id, notes=notes)
    candidates = [with_key(c, config) for c in readable]
    selection, guessed = select_by_records(store, source_id, config, candidates)
    references = references_of(store, source_id, config, candidates, selection)
    used = {r.schema for r in references}
    newest = max([r.seq for r in references] + [c.last_seq or 0 for c in candidates])
    if begins_list:
        notes.append(
            "the list of pools is lost, and begins anew with this pool; lake fsck names the other folders"
        )
    _note_losses(config, references, selection, guessed, notes)
    doubtful = () if config.kind == "append" else unordered(candidates, selection.pieces)
    if doubtful:
        notes.append(
            f"the age of {counted(len(doubtful), 'object')} against merged records cannot be told, because merged "
            f"objects are gone: {listed(list(doubtful))}; at keys of theirs an older version may count: compare "
            "them with what you know, and load right versions again"
        )
    left = names_left(store, source_id)
    if line := lost_names(left, map(stored_schema, schemas.values())):
        notes.append(line)
    disputed = () if config.kind == "append" else contradicted(selection.pieces)
    if disputed:
        notes.append(
            f"{counted(len(disputed), 'object')} of loads seem older by their ids than others of the same "
            f"keys, but the store got them later: {listed(list(disputed))}; their writers were slow, had a wrong "
            "clock, or the objects were put back; at their keys an older version may count"
        )
    return RebuildPlan(
        source_id,
        config,
        catalogued is not None and in_place,
        first_version(newest),
        tuple(references),
        {id: data for id, data in schemas.items() if id in used},
        selection.superseded,
        selection.void,
        guessed,
        tuple(c for c in candidates if c.fault),
        tuple(c for c in selection.lost if not c.is_refused),
        tuple(notes),
        tuple(sorted({*doubtful, *disputed})),
        begins_list,
        {c.object: c.data for c in candidates if c.data},
        left.stored,
        left.added,
        tuple(c.object for c in selection.lost if c.is_refused),
    )


def rebuild(
    lake: Lake,
    plan: RebuildPlan,
    *,
    guess: bool = False,
    progress: CheckProgress = lambda what, count: None,
) -> int:
    """Carries out the plan; returns the version at which the history begins.

    Raises InvalidInput if the plan cannot order objects, unless it may `guess`.  Raises Conflict if a journal
    has appeared meanwhile, and Unavailable, also if the store did not give all objects; then run it again.
    """
    if plan.unseen:  # a vacuum would delete them later, because no reference has them
        raise Unavailable(
            f"the store does not give {counted(len(plan.unseen), 'object')}, which may be sound: "
            f"{listed(list(plan.unseen))}; run the rebuild again when it does; to rebuild without them, move these "
            f"files out of {naming.data(plan.source_id)}"
        )
    if plan.unordered and not guess:
        raise InvalidInput(
            f"{counted(len(plan.unordered), 'object')} cannot be ordered, so an older version of a key may count: "
            f"{listed(list(plan.unordered))}; with --guess their ids order them; then compare these objects "
            "with what you know, and load right versions again"
        )
    store, config = lake.store, plan.config
    if has_history(store, config.id):
        raise Conflict(f"{config.id}: a journal has appeared meanwhile; look at it with lake fsck")
    if plan.copies:
        for object_id in plan.objects:
            if object_id in plan.inlined:
                with store.open_output(naming.data_object(config.id, object_id)) as target:
                    target.write(plan.inlined[object_id])
            else:
                _copy(store, object_id, source_id=plan.source_id, target_id=config.id)
            progress("copies", 1)
    snapshot = Snapshot()
    for reference in sorted(plan.references, key=lambda r: (r.first_seq, r.ordinal)):
        snapshot = snapshot.add(reference)
    in_pool = {r.schema for r in plan.references if not r.sub_pool}
    state = PoolState(
        branches=HashTrieMap({MAIN: BranchState(plan.version, snapshot)}),
        schemas=HashTrieMap(plan.schemas),
        pool_schemas=HashTrieSet(in_pool),
        stored=plan.stored,
        added=plan.added,
    )
    context = lake.context
    history = History(store, pool_id=config.id, key=config.key, rule=rule_of(config), clock=context.clock)
    note = ActivityNote(store, config.id, context.clock)
    note.keep()  # what agents remember of the pool in this folder is of its lost journal
    loaded = LoadedState(plan.version, state, Recent(plan.version))
    write_state(history.journal, loaded, id=context.ids.new(), now=context.now())
    put_fence(history.journal, plan.version)
    put_gate(history.journal)  # for writers that have the lost journal open
    if plan.begins_list:
        lake.catalog.begin_anew()
    if not plan.is_listed:
        lake.catalog.create(config)
    note.keep()
    note.warn()
    if plan.copies and plan.source_id not in lake.catalog.load().state.pools:
        give_up(context, plan.source_id, why=f"it was rebuilt as {config.name} with copies")
    log.info("%s: rebuilt at version %d from %d references", config.id, plan.version, len(plan.references))
    return plan.version


def _any(infos: Iterable[ObjectInfo]) -> bool:
    return next(iter(infos), None) is not None


def _config(
    catalogued: PoolConfig | None,
    candidates: list[Candidate],
    schemas: Mapping[str, bytes],
    options: Wanted,
    *,
    id: str,
    notes: list[str],
) -> PoolConfig:
    """Returns the configuration of the rebuilt pool.  Raises InvalidInput."""
    if catalogued is not None:
        for what, told, value in (
            ("key", options.key, catalogued.key),
            ("kind", options.kind, catalogued.kind),
            ("aggregates", options.aggregates, catalogued.aggregates),
        ):
            if told is not None and told != value:
                raise InvalidInput(
                    f"--{what}: the list of pools has {catalogued.name!r} with {value}; leave it out"
                )
        settings, name = dict(catalogued.settings), options.name or catalogued.name
        return msgspec.structs.replace(catalogued, id=id, name=name, settings=settings)
    keys = sorted({c.key for c in candidates if c.is_known and not c.sub_pool})
    if options.key is None and len(keys) != 1:
        told = f"name several keys ({listed(keys)})" if keys else "do not tell the key"
        raise InvalidInput(f"the objects {told}; name the key: --key FIELD[:desc],...")
    key = options.key or PoolKey.of_footer(keys[0])
    kind = options.kind or _kind(schemas, notes)
    check_rule(kind, options.aggregates or {}, key)
    notes.append("the settings of the pool are lost; lake show lists them, lake set sets them again")
    return PoolConfig(id, naming.check_pool_name(options.name), key, kind, {}, dict(options.aggregates or {}))


def _kind(schemas: Mapping[str, bytes], notes: list[str]) -> str:
    """Returns the kind of the pool as far as its fields show it."""
    fields = [field for data in schemas.values() for field in stored_schema(data)]
    sums = sorted({field.name for field in fields if is_sum(field)})
    if sums:
        raise InvalidInput(
            f"the fields {listed(sums)} hold sums: the pool was an aggregate pool; name --kind aggregate and "
            f"--aggregate {','.join(f'{name}=sum' for name in sums)},..."
        )
    if any(field.name == DELETED and pa.types.is_boolean(field.type) for field in fields):
        notes.append(f"the kind is taken for upsert, since there is a field {DELETED}; --kind says otherwise")
        return "upsert"
    notes.append("the objects do not tell the kind; it is taken for append; --kind says otherwise")
    return "append"


def _note_losses(
    config: PoolConfig,
    references: list[Reference],
    selection: Selection,
    guessed: Sequence[str],
    notes: list[str],
) -> None:
    notes += [
        "deletes and replaces are lost, except where objects were rewritten since: their records are back",
        "loads that never committed count like others",
        "tokens and the list of ingested source files are lost: an agent may load a file again",
        "branches and older revisions are lost",
        "merges count from the time of the loads on the branch, not of the merge; reverts are lost: what they took "
        "back is there again",
    ]
    shown = {r.object for r in references}
    parts = {p.candidate.object for p in selection.pieces if not p.is_whole} & shown
    if parts:
        notes.append(
            f"of {counted(len(parts), 'object')} a part counts, at keys where the objects made of them are damaged "
            "or missing; what was deleted there is back"
        )
    if guessed:
        notes.append(
            f"{counted(len(guessed), 'object')} count as merged into others, by their records: the objects between "
            "them cannot be read; compare the number of records with what you know"
        )
    if selection.dark and config.kind == "aggregate":
        notes.append(
            "inputs of compactions cannot be read; what they had combined may count twice: compare the sums"
        )
    if selection.missing:
        notes.append(f"{counted(len(selection.missing), 'object')} that compactions merged are not there")


def _copy(store: Store, object_id: str, *, source_id: str, target_id: str) -> None:
    """Copies one object; it appears whole or not at all.  Raises Unavailable, NotFound."""
    names = [naming.data_object(id, object_id) for id in (source_id, target_id)]
    try:
        copy_object(store, names[0], store, names[1])
    except ObjectMissing as error:
        raise NotFound(f"{store.uri}/{names[0]}: the object is gone; plan the rebuild again") from error
