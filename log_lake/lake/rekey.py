"""Gives the records of a pool another key: makes a new pool that has them, as one transaction.

Workers read the records of one version by ranges of the old key, and sort them by the new one, as a bulk import
does (`lake.bulk`).  The new pool is listed last.  Until then no program sees it, so a process that is killed
leaves no visible pool with a part of the records.  Called by `lake rekey` and `pyspark_lake.rekey`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lake_core.errors import AlreadyExists, InvalidInput, LakeError, Unavailable
from lake_core.keys import PoolKey
from lake_core.keys.encoding import key_class
from lake_core.keys.ranges import EVERYTHING
from lake_core.naming import MAIN, NOKEY
from lake_core.phrases import counted
from lake_core.records.pools import PoolConfig
from lake_core.schemas.hidden import ROW, without_rows
from log_lake.lake.bulk import Built, Bulk, Divider, whole
from log_lake.lake.clones import settings_of_copy
from log_lake.lake.lake import Lake
from log_lake.lake.loads import commit_written, lease_of
from log_lake.lake.pool import Pool
from log_lake.lake.results import LoadResult, PendingLoad
from log_lake.lake.view import View
from log_lake.loading.block import Block, Reading
from log_lake.loading.checks import faults
from log_lake.loading.declared import declared_columns
from log_lake.loading.key_paths import may_have_key, with_key_paths
from log_lake.reading.plan import ScanPlan
from log_lake.reading.scan import scan
from log_lake.settings import Settings
from log_lake.workers import Exchanging, Here, SortedPiece, Worker, Workers, exchange

REKEY = "rekey"
"""The reason that its leases give. By it `lake fsck` recognizes a folder that is just being filled."""

UNIT_BYTES = 64 << 20
"""How many stored bytes one task reads, about."""


@dataclass(frozen=True)
class Rekeyed:
    """What came of a rekey: the new pool, the version of the old pool whose records it holds, and what was
    written."""

    pool: Pool
    version: int
    result: LoadResult


@dataclass(frozen=True)
class RekeyBulk(Bulk):
    """A bulk import whose records come from another pool; `source` is that pool's id."""

    source: str

    def give(
        self, worker: Worker, number: int, unit: ScanPlan, bounds: tuple[bytes, ...]
    ) -> Iterator[SortedPiece | Built]:
        """Yields the pieces of the records that the plan `unit` reads, then the objects that the worker
        wrote."""
        read = 0

        def blocks() -> Iterator[Block]:
            nonlocal read
            for table in scan(unit, worker.store, pool_id=self.source):
                if table.num_rows:
                    read += table.num_rows
                    yield Block(keyed(table, self.config), checked=True)

        for one in self.pieces(worker, blocks(), bounds):
            yield one if isinstance(one, SortedPiece) else Built(one, read=read)


def keyed(table: pa.Table, config: PoolConfig) -> pa.Table:
    """Returns records of another pool with the key fields of this pool, in the types that a load would give them.

    Raises InvalidInput for a value that does not fit a key.
    """
    names = config.key.names
    types = Settings(config.settings).declared
    declared = {name: types[name] for name in names if name in types}
    fields = without_rows(table)
    with_paths = with_key_paths(fields, names, declared)
    for why in with_paths.wrong.values():
        raise InvalidInput(f"a record of the pool: {why}")
    ready = declared_columns(with_paths.table, declared, source="a record of the pool")
    of_key = ready.select([name for name in names if name in ready.schema.names])
    for why in faults(of_key, Reading("", key=tuple(names))).values():
        raise InvalidInput(f"a record of the pool: {why}")
    return table if ready.schema.equals(fields.schema) else ready  # a changed record is no more as it came


def rekey(
    lake: Lake,
    name: str,
    new: str,
    *,
    key: str | PoolKey,
    kind: str | None = None,
    at: str = MAIN,
    message: str = "",
    workers: Workers | None = None,
    ranges: int | None = None,
) -> Rekeyed:
    """Makes a pool with another key from the readable records of a pool at a revision, `$nokey` included.

    The new pool has the settings of the old one; it has the same kind too, unless `kind` names another.
    Records are never combined: if two records get the same new key, an upsert pool is refused.  `ranges`: how
    many ranges the new pool gets. If it fails after records were written, the error names the folder that is
    left.  Raises AlreadyExists, NotFound, InvalidInput, Conflict, OutcomeUnknown, Unavailable.
    """
    old = lake.pool(name)
    if old.sub_pool:
        raise InvalidInput(f"rekey of {name!r}: name the pool, without a sub-pool; $nokey is read with it")
    if new in lake.catalog.load().state.names:
        raise AlreadyExists(f"pool {new!r} exists already; use another name")
    config = _config(lake, old.config, new, key=key, kind=kind)
    lake.catalog.check_new(config)
    with old.leased(at, why=REKEY) as view:
        views = [view]
        if view.version:
            views.append(lake.pool(f"{name}.{NOKEY}").at_version(view.version, branch=view.branch))
        _check_key(config.key, views)
        pool = lake.unlisted(config)
        message = message or f"rekey of {name}@{view.version}"
        with names_what_is_left(pool):
            result = _loaded(pool, views, old.config.id, message, workers or Here.of(lake.context), ranges)
            lake.catalog.create(config)
    return Rekeyed(pool, view.version, result)


@contextlib.contextmanager
def names_what_is_left(pool: Pool) -> Iterator[None]:
    """Returns a context: if its block fails, and the folder of the unlisted pool is on the store, adds the
    folder's name to the error."""
    try:
        yield
    except LakeError as error:
        id, may_be_there = pool.config.id, True
        with contextlib.suppress(Unavailable):
            may_be_there = any(True for _ in pool.store.list(id))
        if may_be_there:
            error.args = (
                f"{str(error).rstrip('.')}. What was written is in the folder {id}; if no pool has it: "
                f"lake drop {id} --yes",
            )
        raise


def _config(lake: Lake, old: PoolConfig, new: str, *, key: str | PoolKey, kind: str | None) -> PoolConfig:
    kind = old.kind if kind is None else kind
    if kind not in ("append", "upsert", old.kind):
        raise InvalidInput(f"rekey of {old.name!r}: kind {kind!r}: use append or upsert")
    if kind == "aggregate":
        raise InvalidInput(
            f"pool {old.name!r}: records that are combined already would be combined once more under another key; "
            "make an append pool of them (--kind append), or load the original records"
        )
    return lake.new_pool(new, key=key, kind=kind, settings=settings_of_copy(old))


def _check_key(key: PoolKey, views: Sequence[View]) -> None:
    """Raises InvalidInput if no record has a field of the key, or if the values of such a field have no
    order."""
    names = {name for view in views for name in view.schema.names}
    for field in key.names if names else ():
        if not may_have_key(field, names):
            raise InvalidInput(
                f"no record has the key field {field!r}; there are: {', '.join(sorted(names))}"
            )
        for kind in (view.schema.field(field).type for view in views if field in view.schema.names):
            try:
                key_class(kind)
            except InvalidInput as error:
                raise InvalidInput(
                    f"key field {field!r}: {error}, or a field inside: {field}.NAME"
                ) from error


def _loaded(
    pool: Pool,
    views: Sequence[View],
    source: str,
    message: str,
    workers: Workers,
    ranges: int | None,
) -> LoadResult:
    branch = pool.branch()
    job = branch.begin_load(message=message, bulk=True)
    assert isinstance(job, PendingLoad)  # only a token has a first result
    units = [plan for view in views for plan in _plans(view)]
    with lease_of(branch, job, why=REKEY):
        dividing = Divider(
            branch, job, workers=workers.size, ranges=ranges, alone=not isinstance(workers, Exchanging)
        )
        importing = RekeyBulk(pool.config, job, source)
        built = exchange(workers, importing, units, divide=dividing, bounds=dividing.known)
        written = whole(built)
        more = sum(one.read for one in built) - sum(one.action.records for one in written)
        if more:
            raise InvalidInput(
                f"{counted(more, 'record has', 'records have')} the new key of another one, and an upsert pool "
                "keeps one record of a key; add a field to the key, or make an append pool (--kind append)"
            )
        dividing.split()
        return commit_written(branch, job, written)


def _plans(view: View) -> list[ScanPlan]:
    """Plans that together read the records of the view, in the order of the key."""
    if not view.references:
        return []
    pieces = max(1, sum(reference.size for reference in view.references) // UNIT_BYTES)
    keep = ROW.names if view.config.settings.get("format", "parquet") != "parquet" else ()
    return [view.plan(key_range=part, keep=keep) for part in view.split(EVERYTHING, pieces=pieces)]
