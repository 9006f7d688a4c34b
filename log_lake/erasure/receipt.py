"""The receipt of an erasure: the request, what was done, which objects are held and by whom.

    <pool-id>/erasures/<id>.json      JSON (`Receipt`), written again at every step

It is written before the first step, so that a killed erasure is found and resumed.  Objects are named with their
checksums before they are deleted, transactions before their entries are purged.  It holds the condition, which
may be personal data itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Literal

import msgspec

from lake_core import naming
from lake_core.errors import Corrupt, Denied, InvalidInput, NotFound, Unavailable
from lake_core.history.activity import ActivityNote
from lake_core.ids import check_id, home_of, is_id
from lake_core.keys import KeyRange
from lake_core.naming import check_objects
from lake_core.records.decoding import check_counts, decoded_json
from lake_core.store import Store
from log_lake.erasure.holders import FILE
from log_lake.lake.pool import Pool
from log_lake.objects.failures import missing
from log_lake.objects.located import Located

FIRST, VERSION = 1, 2
"""The first and the newest format.  A receipt with `until` has format 2: a program that knows only 1 would ignore
`until`, and erase records that were loaded later (decision 195)."""
PENDING, DONE = "pending", "done"
BLOCK = 1 << 20
"""Bytes that are read at a time for a checksum."""


class ReceiptObject(msgspec.Struct, frozen=True):
    """A data object: its id, its size in bytes, and their SHA-256 in hexadecimal digits."""

    object: str
    size: int
    sha256: str

    def __post_init__(self) -> None:
        check_objects((self.object,), what="receipt")
        check_counts("receipt", size=self.size)


class ReceiptTransaction(msgspec.Struct, frozen=True, omit_defaults=True):
    """A transaction of the erasure; `time` is in microseconds since 1970.  It has the objects that it removed and
    added."""

    version: int
    id: str
    time: int
    branch: str
    what: str
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_id(self.id, what="receipt: a transaction")
        check_counts("receipt", version=self.version)
        check_objects((*self.removed, *self.added), what="receipt")


class Held(msgspec.Struct, frozen=True):
    """An object with matching records that may not be deleted yet, and what must be released first.

    `object` is "" for a writer that began earlier and may still write such an object.  For a file that is not
    one of the pool's objects it is the name in the store's listing, which is used in messages only.
    """

    object: str
    by: str

    def __post_init__(self) -> None:
        named = self.object and not self.by.startswith(FILE)
        check_objects((self.object,) if named else (), what="receipt: held")


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """An erasure in a pool.

    `begun` and `ended` are in microseconds since 1970 by the clock of the lake.  `version`: the version that
    was searched last.  `version_before`: the version before the first step.  `erased` are the objects that held
    matching records, `written` those that replaced them.  `not_searched`: records of sub-pools that the erasure
    did not search.  `purged`: the version up to which the journal is purged for it, 0 if it is not.
    `keeps_history`: no run of this erasure purges the journal.  `until`: records of later versions do not
    match, because a run ended before they were loaded; 0: no run has ended.  `records`: how many matching
    records readers of `main` saw when the erasure began; None if that is not known.  `content`: what `main`
    holds at the end by its stored sums, as `lake verify` prints it; "" if that is not known.
    """

    format: int
    id: str
    lake: str
    pool_id: str
    pool: str
    sub_pool: str
    low: bytes
    high: bytes | None
    where: str | None
    author: str
    version_before: int = msgspec.field(name="began")
    begun: int
    status: Literal["pending", "done"] = "pending"
    ended: int = 0
    version: int = 0
    transactions: tuple[ReceiptTransaction, ...] = ()
    erased: tuple[ReceiptObject, ...] = ()
    written: tuple[ReceiptObject, ...] = ()
    held: tuple[Held, ...] = ()
    not_searched: dict[str, int] = {}
    purged: int = 0
    statement: str = ""
    keeps_history: bool = False
    until: int = 0
    records: int | None = None
    content: str = ""

    def __post_init__(self) -> None:
        check_id(self.id, what="receipt")
        check_id(self.pool_id, what="receipt: its pool")
        check_counts(
            f"receipt {self.id}",
            began=self.version_before,
            version=self.version,
            purged=self.purged,
            records=self.records or 0,
        )
        if self.sub_pool not in ("", *naming.SUB_POOLS):
            raise Corrupt(f"receipt {self.id}: there is no sub-pool {self.sub_pool[:80]!r}")

    @property
    def key_range(self) -> KeyRange:
        """The range of keys whose records were to be erased."""
        return KeyRange(self.low, self.high)

    @property
    def size_erased(self) -> int:
        """Total bytes of the erased objects."""
        return sum(one.size for one in self.erased)

    @property
    def size_written(self) -> int:
        """Total bytes of the objects that replaced them."""
        return sum(one.size for one in self.written)

    def encode(self) -> bytes:
        """Returns the stored bytes: JSON with one field per line, in the oldest format that can express the
        receipt."""
        stored = msgspec.structs.replace(self, format=VERSION if self.until else FIRST)
        return msgspec.json.format(msgspec.json.encode(stored), indent=2) + b"\n"


def decode(data: bytes, *, name: str) -> Receipt:
    """Returns the receipt that the bytes hold.  Raises Corrupt."""
    receipt: Receipt = decoded_json(data, Receipt, name=name, what="not the receipt of an erasure")
    if receipt.format > VERSION:
        raise Corrupt(f"{name}: written by a newer version (format {receipt.format}); upgrade this program")
    return receipt


def write(pool: Pool, receipt: Receipt) -> None:
    """Stores the receipt beside the pool.  Raises Unavailable.

    With a pending receipt, which is not an entry of the journal, the pool's activity note is written too.
    Otherwise the agent might leave the pool alone for days (`agents.quiet`).
    """
    if receipt.status != PENDING:
        _put(pool, receipt)
        return
    note = ActivityNote(pool.store, pool.config.id, pool.context.now)
    if not note.keep():
        kind = Denied if isinstance(note.refusal, Denied) else Unavailable
        raise kind(
            f"erasure of pool {pool.name!r}: {pool.store.uri} took no activity note; its receipt was not written. "
            f"Try again, or allow this process to write below {naming.ACTIVITY}/ ({note.refusal})"
        )
    try:
        _put(pool, receipt)
    finally:
        note.keep()  # again if that took so long that the note does not stand for the receipt


def _put(pool: Pool, receipt: Receipt) -> None:
    pool.store.put(naming.erasure(pool.config.id, receipt.id), receipt.encode())


def read(pool: Pool, id: str) -> Receipt:
    """Returns the receipt of an erasure of the pool.  Raises NotFound, Corrupt, Unavailable."""
    name = naming.erasure(pool.config.id, id)
    data = pool.store.get(name) if is_id(id) else None
    if data is None:
        raise NotFound(f"pool {pool.name!r} has no erasure {id!r}; lake erasures {pool.name} lists them")
    return _of_pool(decode(data, name=name), pool, name)


def _of_pool(receipt: Receipt, pool: Pool, name: str) -> Receipt:
    """Returns the receipt.  Raises Corrupt if it is another pool's, or not the one that its name says."""
    if receipt.pool_id != pool.config.id or name != naming.erasure(pool.config.id, receipt.id):
        raise Corrupt(f"{name}: holds the receipt {receipt.id} of the pool {receipt.pool_id}")
    return receipt


def read_all(pool: Pool) -> Iterator[Receipt]:
    """Yields the receipts of a pool, oldest first.  Raises Corrupt, Unavailable."""
    for info in list(pool.store.list(naming.erasures(pool.config.id))):
        data = pool.store.get(info.name)
        if data is not None:
            yield _of_pool(decode(data, name=info.name), pool, info.name)


def united(stored: Receipt, newer: Receipt) -> Receipt:
    """Returns the newer receipt, with the objects and transactions that only the stored one names.

    While a run still works, the result is pending, even if another run stored that the erasure is done: the
    working run may have found matching records again.
    """
    objects = {
        name: tuple({one.object: one for one in (*getattr(stored, name), *getattr(newer, name))}.values())
        for name in ("erased", "written")
    }
    transactions = {one.id: one for one in (*stored.transactions, *newer.transactions)}
    ordered = tuple(sorted(transactions.values(), key=lambda one: (one.version, one.id)))
    keeps_history = stored.keeps_history or newer.keeps_history
    until = min((one.until for one in (stored, newer) if one.until), default=0)
    return msgspec.structs.replace(
        newer, transactions=ordered, keeps_history=keeps_history, until=until, **objects
    )


def find_open(pool: Pool, key_range: KeyRange, where: str | None) -> Receipt | None:
    """Returns the pending erasure of the same records; None if there is none."""
    asked = (pool.sub_pool, key_range, where)
    for receipt in read_all(pool):
        if receipt.status == PENDING and (receipt.sub_pool, receipt.key_range, receipt.where) == asked:
            return receipt
    return None


def summed(store: Store, pool_id: str, located: Located) -> ReceiptObject:
    """Returns the object with its checksum; reads the whole object.  Raises ObjectMissing, Unavailable."""
    object_id, data = located.object, located.data
    if data:
        return ReceiptObject(object_id, len(data), hashlib.sha256(data).hexdigest())
    name = naming.data_object(pool_id, object_id)
    digest, size = hashlib.sha256(), 0
    try:
        file = store.open_input(name)
    except FileNotFoundError as error:
        raise missing(store.uri, name) from error
    with file:
        while block := file.read(BLOCK):
            digest.update(block)
            size += len(block)
    return ReceiptObject(object_id, size, digest.hexdigest())


def exists(store: Store, pool_id: str, object_id: str) -> bool:
    """Whether the object is on the store in the pool's own folder.  False for an object of a clone that lies in
    another pool's folder, because only that pool can delete it."""
    if home_of(object_id):
        return False
    name = naming.data_object(pool_id, object_id)
    try:
        store.open_input(name).close()
    except FileNotFoundError:
        return False
    return True


def check_pool(receipt: Receipt, pool: Pool) -> None:
    """Raises InvalidInput for the receipt of another pool."""
    if (receipt.lake, receipt.pool_id) != (pool.context.lake_id, pool.config.id):
        raise InvalidInput(
            f"erasure {receipt.id} is of pool {receipt.pool!r} ({receipt.pool_id}) in lake {receipt.lake}, not of "
            f"{pool.name!r} ({pool.config.id}) in lake {pool.context.lake_id}; open that lake"
        )
