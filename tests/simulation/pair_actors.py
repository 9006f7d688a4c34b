"""Who works on the pool of a pair: each does one piece of work."""

from __future__ import annotations

from collections.abc import Callable

from lake_core.errors import (
    ObjectMissing,
    ObjectVacuumed,
)
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from lake_core.records import Action, RemoveReference, RemoveTombstone
from log_lake.agents.checkpoint.run import checkpoint_and_purge
from log_lake.agents.retention.expire import expire
from log_lake.agents.tombstones.run import apply
from log_lake.erasure.receipt import DONE
from log_lake.erasure.run import erase
from log_lake.lake.results import LoadResult, PendingLoad
from log_lake.lake.tags import delete_tag
from log_lake.loading.block import Block
from log_lake.rewriting.compaction import begin_compaction, compact
from log_lake.rewriting.exchange import commit
from log_lake.rewriting.work import write as rewrite
from log_lake.vacuum.execute import vacuum
from log_lake.vacuum.orphans import scan_orphans
from log_lake.workers import Here
from tests.simulation.oracle import ERASED, Promise, Write
from tests.simulation.pair_process import GRACE, KEYS, POOL, TTL, Process
from tests.simulation.pair_transactions import transactor
from tests.simulation.truth import Violation


def loader(me: Process) -> None:
    write, branch = Write(me.rows()), me.branch()
    me.write(write, lambda message: branch.append(me.table(write), message=message))


def replacer(me: Process) -> None:
    low = me.chance.randrange(KEYS)
    high = me.chance.randint(low + 1, KEYS)
    span = KeyRange(encode_value(low), encode_value(high))
    write, branch = Write(me.rows(low, high), (low, high), replaces=True), me.branch()
    me.write(write, lambda message: branch.replace_with(me.table(write), key_range=span, message=message))


def deleter(me: Process) -> None:
    branch, key = me.branch(), me.chance.randrange(KEYS)
    rows = me.world.truth.shown[-1].get(branch.name, {})
    if me.world.kind == "aggregate" or not rows or me.chance.random() < 0.5:
        write, where = Write(span=(key, key + 1)), f"k = {key}"
    else:
        row = me.chance.choice(sorted(rows))
        number = row[1] if me.world.kind == "append" else rows[row]
        write, where = Write(span=(0, ERASED + 1), number=number), f"n = {number}"
    me.write(write, lambda message: branch.delete(where=where, reason=message))


def compactor(me: Process) -> None:
    branch = me.branch()
    references = branch.revision().references
    if references:
        chosen = me.chance.sample(references, me.chance.randint(1, len(references)))
        compact(branch, chosen, outputs=me.chance.choice((1, 1, 2)))


def tombstones(me: Process) -> None:
    apply(me.branch(), now=me.now, at_once=me.chance.random() < 0.8)


def checkpoint(me: Process) -> None:
    checkpoint_and_purge(me.lake, POOL, now=me.now, purging=me.chance.random() < 0.7)


def brancher(me: Process) -> None:
    branches = sorted(name for name in me.state.branches if name != "main")
    roots = [(name, tag.branch) for name, tag in me.pool.tags.items() if tag.deleted]
    what = me.chance.choice(("create", "load", "load", "merge", "merge", "delete", "delete", "restore"))
    if what == "restore" and roots:
        root, name = me.chance.choice(roots)
        me.pool.create_branch(name, at=root)
    elif what == "create" or not branches:
        at = "main" if me.chance.random() < 0.6 else me.version()
        me.pool.create_branch(f"b{me.world.number()}", at=at)
    else:
        branch = me.chance.choice(branches)
        if what == "load":
            write = Write(me.rows())
            me.write(write, lambda message: me.pool.branch(branch).append(me.table(write), message=message))
        elif what == "merge":
            me.pool.branch().merge(branch)
        else:
            me.pool.delete_branch(branch)


def tagger(me: Process) -> None:
    tags = sorted(me.pool.tags)
    if tags and me.chance.random() < 0.4:
        delete_tag(me.pool, me.chance.choice(tags), chunk=me.chance.choice((1, 2, 10)))
    else:
        expires = me.chance.choice((None, me.now + 2 * GRACE))
        at = "main" if me.chance.random() < 0.4 else me.version()
        me.pool.tag(f"t{me.world.number()}", at=at, expires=expires)


def expirer(me: Process) -> None:
    expire(me.pool)


def vacuumer(me: Process) -> None:
    vacuum(me.pool, chunk=me.chance.choice((1, 2, 10)))


def orphan_scanner(me: Process) -> None:
    scan_orphans(me.pool)


def eraser(me: Process) -> None:
    before = me.world.truth.holding(ERASED)
    if erase(me.pool, where=f"k = {ERASED}").status == DONE:
        me.world.check_erased(before)


def reader(me: Process) -> None:
    """Reads without a lease: now, after a while within the grace time or beyond, or an old version."""
    truth, begun = me.world.truth, me.world.now()
    is_old = me.chance.random() < 0.2
    view = me.pool.at(me.version() if is_old else "main")
    promise = Promise(frozenset(r.object for r in view.references if not r.data), until=begun + GRACE)
    if not is_old:
        truth.promises.append(promise)
    me.sleep(me.chance.choice((0.0, 0.0, GRACE / 4, GRACE / 2, 3 * GRACE)))
    try:
        me.check(view, view.to_table())
    except ObjectMissing as error:
        raise Violation(f"a reader without a lease is not told of a vacuum: {error}") from error
    except ObjectVacuumed as error:
        if not is_old and me.world.now() < begun + GRACE and not promise.objects & truth.erased:
            raise Violation(f"a reader within the grace time: {error}") from error


def leased_reader(me: Process) -> None:
    """Reads under a lease, any revision, for as long as it likes; if it stands still too long, the lease dies."""
    truth, why = me.world.truth, f"reading {me.world.number()}"
    with me.pool.leased("main" if me.chance.random() < 0.4 else me.version(), why=why) as view:
        stored = me.world.store.objects
        name = next((name for name in me.world.holders if why.encode() in stored.get(name, b"")), "")
        if not name:
            return  # it stood still for so long that its lease was dead, and a vacuum has removed it
        promise = Promise(frozenset(r.object for r in view.references if not r.data), lease=name)
        truth.promises.append(promise)
        for _ in range(me.chance.randint(0, 3)):
            if me.chance.random() < 0.2:
                me.sleep(me.chance.choice((TTL / 2, 3 * TTL)))
            for _ in range(me.chance.randint(0, 40)):
                me.world.scheduler.pause()
        try:
            me.check(view, view.to_table())
        except (ObjectMissing, ObjectVacuumed) as error:
            if promise in truth.promises:
                raise Violation(f"a reader with a live lease: {error}") from error
        if promise in truth.promises:
            truth.promises.remove(promise)


def stalled_writer(me: Process) -> None:
    """Begins a load or a compaction, stands still, and comes back."""
    branch = me.branch()
    pause = me.chance.choice((0.0, TTL / 2, 2 * TTL, 3 * GRACE))
    references = branch.revision().references
    if references and me.chance.random() < 0.4:
        chosen = references if me.world.kind == "aggregate" else references[: me.chance.randint(1, 3)]
        work = begin_compaction(branch, chosen, outputs=1, message="")
        written = rewrite(work, Here.of(me.lake.context), me.lake.store)
        me.sleep(pause)
        commit(branch, work, written, does="merges")
        return
    write = Write(me.rows())

    def load(message: str) -> LoadResult:
        begun = branch.begin_load(message=message)
        assert isinstance(begun, PendingLoad)
        builder = branch.builder(begun)
        builder.add(Block(me.table(write)))
        objects = builder.finish()
        me.sleep(pause)
        return branch.commit(begun, objects=[w.action for w in objects], schemas=[w.schema for w in objects])

    me.write(write, load)


def splitter(me: Process) -> None:
    keys = sorted(me.chance.sample(range(ERASED + 1), me.chance.randint(1, 3)))
    match me.chance.choice(("split", "split", "into", "unsplit", "all")):
        case "split":
            me.pool.split(at=keys)
        case "into":
            me.pool.split(into=me.chance.choice((2, 3)))
        case "unsplit":
            me.pool.unsplit(at=keys)
        case _:
            me.pool.unsplit()


def undoer(me: Process) -> None:
    branch = me.branch()
    undoes = me.chance.random() < 0.7
    kinds = (RemoveReference, RemoveTombstone) if undoes else Action
    versions = [
        version
        for version, by in me.pool.log(branch=branch.name)
        if any(isinstance(action, kinds) for action in by.actions)
    ]
    if versions:
        version = str(me.chance.choice(versions[:8]))
        branch.undo(version) if undoes else branch.revert(version)


TRANSACTOR = "transactions over pools"

ACTORS: dict[str, Callable[[Process], None]] = {
    "loader": loader,
    "replacer": replacer,
    "deleter": deleter,
    "compactor": compactor,
    "tombstones": tombstones,
    "checkpoint and purge": checkpoint,
    "branch maker and merger": brancher,
    "tagger": tagger,
    "expirer": expirer,
    "vacuum": vacuumer,
    "orphan scan": orphan_scanner,
    "eraser": eraser,
    "reader without a lease": reader,
    "reader with a lease": leased_reader,
    "stalled writer": stalled_writer,
    "undoer": undoer,
    "splitter": splitter,
    TRANSACTOR: transactor,
}
"""Who works on a pool."""
