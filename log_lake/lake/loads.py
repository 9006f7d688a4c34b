"""Loads: begins a load, builds objects, and commits one transaction; and the preview, which does everything except
the writing.

Called by `Branch`; Spark tasks call `builder`.
"""

from __future__ import annotations

import datetime as dt
import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

import pyarrow as pa

from lake_core.context import INLINES_SINCE
from lake_core.errors import InvalidInput
from lake_core.history import Draft, PoolState
from lake_core.history.covered import interval_source
from lake_core.history.limits import MOST_INLINED
from lake_core.history.rebase import rebase
from lake_core.ids import first_above, not_below
from lake_core.journal import LoadedState
from lake_core.keys import KeyRange
from lake_core.keys.encoding import Instant, decode_key
from lake_core.naming import PARQUET
from lake_core.phrases import counted
from lake_core.records import Action, AddObject, Consume, Source
from lake_core.records.pools import PoolConfig
from lake_core.schemas.hidden import user_fields
from lake_core.schemas.rule import rule_of
from lake_core.schemas.schema import stored_schema, unite_schemas
from lake_core.store import Store
from log_lake.fields.names import names_at, with_added
from log_lake.lake.counting import removed_by, removed_metadata
from log_lake.lake.field_changes import field_changes
from log_lake.lake.line import Line
from log_lake.lake.replace_checks import key_classes_with
from log_lake.lake.results import LoadResult, PendingLoad, committed_load, repeated_load
from log_lake.lake.token_kinds import TokenKind, TokenKinds, check_kind
from log_lake.lake.write import WriteArguments
from log_lake.leases import HeldLease
from log_lake.loading.block import QUARANTINE, Block
from log_lake.loading.builder import ObjectBuilder
from log_lake.loading.contract import EVOLVE
from log_lake.loading.files import check_rejected, rejected_fault
from log_lake.loading.misfits import Misfits, summed
from log_lake.loading.options import RUN, SCAN
from log_lake.loading.preview import Nowhere, Preview, PreviewBuilder
from log_lake.measuring import measured, timed
from log_lake.objects.containers.limits import OBJECT_LIMITS, ObjectLimits
from log_lake.objects.metadata import Origin
from log_lake.objects.write import WrittenObject
from log_lake.settings import Settings
from log_lake.settings.covering import keeps_keys, tells_times
from log_lake.texts.keytext import check_classes

if TYPE_CHECKING:
    from log_lake.lake.delete_spec import DeleteSpec

log = logging.getLogger(__name__)

B = TypeVar("B", bound=ObjectBuilder)


def begin_load(
    branch: Line,
    write: WriteArguments,
    *,
    kinds: TokenKinds = (TokenKind.LOAD,),
    believed: LoadedState[PoolState] | None = None,
) -> PendingLoad | LoadResult:
    """Begins a load at the newest version, or returns the first result under the token.

    `kinds`: the work for which the token may stand.  Raises InvalidInput if it stands for other work.
    `believed`: a state that is probably the newest; the load is committed only if it was (`Line.believing`).
    """
    branch.check_writable()
    if not write.derives:
        branch.check_not_derived()
    loaded = believed or branch.history.load_open()
    if (first := branch.history.first_use(loaded.state, write.token, branch=branch.name)) is not None:
        check_kind(branch.history, first, kinds, token=write.token)
        return repeated_load(first)
    context, config, names = branch.context, branch.config, names_at(loaded.state)
    if names and branch.settings["format"] != PARQUET:
        raise InvalidInput(
            f"pool {config.name!r}: format={branch.settings['format']} keeps names of fields in each record, and "
            "fields of this pool were renamed or dropped; set format=parquet"
        )
    return PendingLoad(
        origin=Origin(context.lake_id, config.id, context.ids.new(), context.author),
        branch=branch.name,
        read_version=loaded.version,
        memory=branch.settings["load.memory"],
        token=write.token,
        kinds=kinds,
        message=write.message,
        max_rejected=write.settings(config)["bad_records.max"],
        first=first_above(loaded.state.removed.floor, now=context.now()),
        fields=fields_at(loaded.state, branch.name),
        schema=write.settings(config)["schema"],
        inline=room_to_inline(loaded.state, branch),
        sums=branch.has_sums,
        points=loaded.state.points,
        bulk=write.bulk,
        believes=believed is not None,
        names=names,
    )


def begin_adding(
    branch: Line, write: WriteArguments, *, believed: LoadedState[PoolState] | None = None
) -> PendingLoad | LoadResult:
    """Begins a load that only adds records, or returns the first result under the token.

    Raises InvalidInput if the token stands for a transaction that brought no records, such as a delete: a
    repeated load would then count as done, though its records were never stored.
    """
    begun = begin_load(branch, write, believed=believed)
    if isinstance(begun, LoadResult) and not begun.objects:
        raise InvalidInput(
            f"token {write.token!r} stands for version {begun.version}, which brought no records, so nothing was "
            "loaded; use another token for a load"
        )
    return begun


def room_to_inline(state: PoolState, branch: Line) -> int:
    """Returns how many bytes of a load's objects may be stored in the journal; 0 if none may."""
    if branch.context.format_version < INLINES_SINCE:
        return 0
    inlined = sum(there.snapshot.inlined for _, there in state.branches.items())
    most: int = branch.settings["load.inline"]
    return max(0, min(most, MOST_INLINED - inlined))


def fields_at(state: PoolState, branch: str) -> pa.Schema:
    """Returns the fields of the branch's records, and added ones, as readers see them; no fields of records if the
    branch does not exist, which the commit will report."""
    there = state.branches.get(branch)
    ids = there.snapshot.schemas() if there is not None else []
    united = _united(tuple(state.schemas[id] for id in ids if id in state.schemas))
    return names_at(state).shown(with_added(united, state))


@functools.lru_cache(maxsize=16)
def _united(schemas: tuple[bytes, ...]) -> pa.Schema:
    """Returns the united fields.  Cached, because a pool may have thousands of schemas, and a program often loads
    into few pools."""
    return user_fields(unite_schemas(map(stored_schema, schemas)))


def builder(
    kind: Callable[..., B],
    store: Store,
    config: PoolConfig,
    pending: PendingLoad,
    new_id: Callable[[], str],
    *,
    first_ordinal: int = 0,
    limits: ObjectLimits = OBJECT_LIMITS,
    inline: int = 0,
) -> B:
    """Returns a builder of objects for a load, in any process; `kind` is its class, an `ObjectBuilder`.

    `first_ordinal` is the ordinal of its first object.  `inline` must be 0 if other builders build objects of
    the same load, because an entry has room for one.
    """

    def id_of_load() -> str:
        return not_below(new_id(), pending.first)

    settings = Settings(config.settings)
    return kind(
        store,
        config.key,
        pending.origin,
        pending.memory,
        id_of_load,
        first_ordinal,
        rule_of(config),
        limits.of_layout(scan=settings["layout"] == SCAN),
        settings["format"],
        fields=pending.fields,
        contract=pending.contract(config),
        inline=inline,
        sums=pending.sums,
        indexes=pending.names.stored_rules(settings.index_rules),
        cluster=pending.names.stored_cluster(settings.cluster),
        sort=RUN if pending.bulk else settings["load.sort"],
        target_size=settings["compact.target_size"],
        points=pending.points,
        bulk=pending.bulk,
        roll_up=settings["roll_up"],
        names=pending.names,
    )


def builder_of(
    branch: Line, pending: PendingLoad, *, first_ordinal: int = 0, alone: bool = False
) -> ObjectBuilder:
    """Returns a builder of objects for a load of the branch, in this process.

    `alone`: it builds all objects of the load, so these may be stored in the journal.
    """
    return builder(
        ObjectBuilder,
        branch.store,
        branch.config,
        pending,
        branch.context.ids.new,
        first_ordinal=first_ordinal,
        limits=branch.limits.objects,
        inline=pending.inline if alone else 0,
    )


def lease_of(branch: Line, pending: PendingLoad, *, why: str) -> HeldLease:
    """Returns the lease of a load; hold it until the load is committed."""
    return branch.write_lease(
        pending.origin.transaction_id, read_version=pending.read_version, first=pending.first, why=why
    )


def load_files(branch: Line, files: list[str], write: WriteArguments) -> LoadResult:
    """Loads files as one transaction."""
    pending = begin_adding(branch, write)
    if isinstance(pending, LoadResult):
        return pending
    with (
        measured(branch.store, "load", pool=branch.config.name, branch=branch.name) as work,
        builder_of(branch, pending, alone=True) as building,
        lease_of(branch, pending, why="load"),
        branch.open_files(files, write, fields=pending.fields) as source,
    ):
        for block in work.each("read", source.blocks(write.format, limit=pending.max_rejected)):
            building.add(block)
        return replace(commit_written(branch, pending, building.finish()), notes=source.notes)


def append_blocks(branch: Line, blocks: Sequence[Block], write: WriteArguments) -> LoadResult:
    """Loads records that are in memory as one transaction."""
    return branch.believing(lambda believed: load_blocks(branch, blocks, write, believed=believed))


def load_blocks(
    branch: Line,
    blocks: Iterable[Block],
    write: WriteArguments,
    *,
    believed: LoadedState[PoolState] | None = None,
) -> LoadResult:
    """Loads records as one transaction."""
    pending = begin_adding(branch, write, believed=believed)
    if isinstance(pending, LoadResult):
        return pending
    with (
        measured(branch.store, "load", pool=branch.config.name, branch=branch.name),
        builder_of(branch, pending, alone=True) as building,
        lease_of(branch, pending, why="load"),
    ):
        for block in blocks:
            building.add(block)
        return commit_written(branch, pending, building.finish())


def preview(branch: Line, files: list[str], write: WriteArguments) -> Preview:
    """Returns the result that a load of the files would have; it counts bad records, whatever the policy."""
    policy = write.settings(branch.config)["bad_records"]
    write = replace(write, options={**write.options, "bad_records": QUARANTINE})
    pending = begin_load(branch, write)
    assert isinstance(pending, PendingLoad)  # only a token has a first result
    nowhere, new_id = cast(Store, Nowhere(branch.store)), branch.context.ids.new
    building = PreviewBuilder(
        nowhere,
        branch.config.key,
        pending.origin,
        pending.memory,
        new_id,
        rule=branch.rule,
        fields=pending.fields,
        roll_up=branch.settings["roll_up"],
        names=pending.names,
    )
    with building, branch.open_files(files, write, fields=pending.fields) as source:
        for block in source.blocks(write.format):
            building.add(block)
        written = building.finish()
    answer = replace(building.preview(), notes=source.notes)
    objects, schemas = [w.action for w in written], [w.schema for w in written]
    misfits = summed(one.misfits for one in written)
    changed = field_changes(pending.fields, objects, schemas, misfits, pending.names)
    answer = replace(answer, changes=changed.lines)
    if answer.bad and policy != QUARANTINE:
        return replace(answer, fails=True)
    if fault := rejected_fault(objects, pending.max_rejected):
        return replace(answer, fails=True, why=fault)
    if not objects:  # the load commits nothing
        return answer
    draft = _draft(branch, pending, tuple(objects), schemas)
    now = int(branch.context.now() * 1_000_000)
    rebase(branch.history.load().state, draft, key=branch.config.key, rule=branch.rule, time=now)
    return answer


def commit_written(
    branch: Line,
    pending: PendingLoad,
    written: Sequence[WrittenObject],
    *,
    replaced: DeleteSpec | None = None,
    count: bool = False,
    is_exact: bool = False,
) -> LoadResult:
    """Commits the objects that a builder wrote; `count` and `is_exact` are as in `commit_load`."""
    objects, schemas = [w.action for w in written], [w.schema for w in written]
    return commit_load(
        branch,
        pending,
        objects=objects,
        schemas=schemas,
        replaced=replaced,
        misfits=summed(one.misfits for one in written),
        count=count,
        is_exact=is_exact,
    )


def commit_load(
    branch: Line,
    pending: PendingLoad,
    *,
    objects: list[AddObject],
    schemas: list[pa.Schema],
    sources: list[Source] | None = None,
    replaced: DeleteSpec | None = None,
    misfits: Misfits | None = None,
    count: bool = False,
    is_exact: bool = False,
) -> LoadResult:
    """Commits the objects of a load, as `Branch.commit` says.

    With `is_exact`, `replaced` hides records as a delete does, and never records of loads that commit later.
    Also with `is_exact`, raises PlanAgain if anything was committed to the branch since the load began.
    """
    check_rejected(objects, pending.max_rejected)
    removed, seen = None, 0
    if replaced is not None:
        revision = branch.revision()
        check_classes(replaced.key_range, branch.config.key, key_classes_with(revision, objects, schemas))
        removed, seen = removed_by(branch, revision, replaced, looks=count), revision.version
    transaction_id = pending.origin.transaction_id
    sources = [*(sources or []), *_covering(branch, replaced, transaction_id, is_exact=is_exact)]
    actions: tuple[Action, ...] = (
        *([Consume(tuple(sources))] if sources else []),
        *(
            [replaced.tombstone(transaction_id, reason=pending.message, replaces=not is_exact)]
            if replaced
            else []
        ),
        *objects,
    )
    if not actions:
        return LoadResult(None)
    changed = field_changes(pending.fields, objects, schemas, misfits or {}, pending.names)
    own = branch.own_metadata({**changed.metadata, **removed_metadata(removed)})
    draft = replace(_draft(branch, pending, actions, schemas), metadata=own)
    draft = replace(draft, is_exact=is_exact or pending.believes)
    does = f"adds {counted(len(objects), 'object')}" + (" in place of a key range" if replaced else "")
    with timed(branch.store, "load.commit"):
        committed = branch.commit_draft(draft, does=does)
    if committed.repeated:
        check_kind(branch.history, committed.repeated, pending.kinds, token=pending.token)
        return repeated_load(committed.repeated)
    if committed.version != seen + 1:  # others may have added some that it replaced, too
        removed = None
    if changed.retyped:
        log.warning("%s: version %d: %s", branch.config.name, committed.version, "; ".join(changed.lines))
    elif changed.lines:
        log.info("%s: version %d: %s", branch.config.name, committed.version, changed.lines[0])
    return committed_load(committed, objects, changes=changed, removed=removed)


def _covering(branch: Line, replaced: DeleteSpec | None, id: str, *, is_exact: bool) -> list[Source]:
    """Returns the interval that a replace brings, in the form of a source (`history.covered`); nothing if it
    brings none."""
    if replaced is None or replaced.condition is not None or replaced.sub_pool or is_exact:
        return []
    source = interval_source(replaced.key_range, id=id)
    return [] if source is None or not _is_kept(branch, replaced.key_range) else [source]


def _is_kept(branch: Line, key_range: KeyRange) -> bool:
    """Whether the history keeps the range as an interval: its bounds are times, or a setting asks for it.

    Other bounds are not kept: they may be personal data, which an erasure could not remove from the history.
    """
    settings, key = branch.settings, branch.config.key
    if keeps_keys(settings):
        return True
    bounds = [decode_key(bound, key) for bound in (key_range.low, key_range.high or b"")]
    if any(len(values) != 1 for values in bounds):
        return False
    return tells_times(settings) or all(isinstance(value, dt.date | Instant) for (value,) in bounds)


def _draft(
    branch: Line, pending: PendingLoad, actions: tuple[Action, ...], schemas: Sequence[pa.Schema]
) -> Draft:
    return Draft(
        id=pending.origin.transaction_id,
        branch=pending.branch,
        read_version=pending.read_version,
        author=branch.context.author,
        actions=actions,
        schemas=tuple(schemas),
        message=pending.message,
        token=pending.token,
        keeps_fields=pending.schema != EVOLVE,
    )
