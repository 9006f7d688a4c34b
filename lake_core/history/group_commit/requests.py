"""Requests: drafts that the writer of the next entry commits for their writers (group commit).

A writer that lost two races, or saw contention at one of its last commits, stores its draft as a request.  The
writer that wins a version collects all requests that it sees into its entry.  A waiting writer lets older
requests go first, for a while.  Each request is committed once, whichever process dies at any point, because:

- A request names the version after which it may have been committed (`possible_since`).  A combiner may commit
  it while the recent ids (`journal.recent`) reach back to that version, so every combiner knows whether it is
  committed.  A request also expires by the clock, because the token and the unreferenced objects that it relies
  on are not kept forever.
- Its writer folds every entry before it tries the next version, and finds its id there if another writer was
  faster.
- If one state refuses a draft, all later states refuse it too, or at least leave it to its own writer
  (`refusals`).  So after a writer has reported a refusal, no combiner can commit the draft.

A combiner deletes the expired requests that it sees; otherwise requests of dead writers would pile up.

The folder may have objects that are unreadable, or no requests: an empty file that a full disk left, another
user's file that can be neither read nor deleted, or any other file.  Each process reads such an object once and
then ignores it: it does not wait for it, read it or delete it again (decision 28).  Ignoring a request is
harmless, because its writer commits it too.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from lake_core import naming
from lake_core.errors import Corrupt, Unavailable
from lake_core.history.draft import Draft
from lake_core.ids import is_id
from lake_core.journal import JOURNAL_LIMITS, JournalLimits
from lake_core.journal.recent import generation
from lake_core.records import Action
from lake_core.records.codec import Codec
from lake_core.schemas.schema import stored_schema
from lake_core.store import ObjectInfo, Store

log = logging.getLogger(__name__)

MAX_REQUESTS = 256
"""The most requests that one entry collects."""

MAX_REQUEST_BYTES = 4_000_000
"""The most bytes of all requests that one entry collects, and so of each request: an entry is one small
object."""

MAX_QUEUE = 1024
"""The most objects of the queue that a writer reads. It is much more than one entry collects, because unreadable
objects that stay forever must not hide the requests after them."""


MAX_WAIT_MICROSECONDS = 600 * 1_000_000
"""Microseconds after which a request expires. If clocks differ by more, requests seem expired at once, and each
writer commits only for itself."""


class DraftRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A draft that waits for a writer to commit it, as it is stored.  `time` is in microseconds since 1970."""

    id: str
    possible_since: int = msgspec.field(name="seen")
    time: int
    branch: str
    read_version: int = msgspec.field(name="base")
    author: str
    actions: tuple[Action, ...]
    schemas: tuple[bytes, ...] = ()
    message: str = ""
    token: str = ""
    metadata: dict[str, str] = {}

    @property
    def draft(self) -> Draft:
        """Returns the draft of the request.  Raises Corrupt."""
        try:
            schemas = tuple(map(stored_schema, self.schemas))
        except Corrupt as error:
            raise Corrupt(f"request {self.id}: {error}") from error
        return Draft(
            self.id,
            self.branch,
            self.read_version,
            self.author,
            self.actions,
            schemas,
            self.message,
            self.token,
            metadata=self.metadata,
        )

    def may_be_committed_at(self, version: int, *, now: int, limits: JournalLimits = JOURNAL_LIMITS) -> bool:
        """Whether the entry of a version may hold the request.

        Later entries could not tell whether an earlier one holds it.  An expired request belongs to a dead
        writer, whose token and objects may have been deleted.
        """
        posted = generation(self.possible_since, limits=limits)
        return (
            generation(version, limits=limits) <= posted + 1 and abs(now - self.time) <= MAX_WAIT_MICROSECONDS
        )


def request_of(draft: Draft, *, possible_since: int, time: int) -> DraftRequest:
    """Returns the draft as a request.  `time` is in microseconds since 1970."""
    schemas = tuple(s.serialize().to_pybytes() for s in draft.schemas)
    return DraftRequest(
        draft.id,
        possible_since,
        time,
        draft.branch,
        draft.read_version,
        draft.author,
        draft.actions,
        schemas,
        draft.message,
        draft.token,
        dict(draft.metadata),
    )


@dataclass(frozen=True)
class Requests:
    """The requests of one journal, which its writers store, read and delete."""

    store: Store
    journal: str
    codec: Codec[DraftRequest] = field(default_factory=lambda: Codec(DraftRequest))
    _read_before: dict[str, DraftRequest | None] = field(default_factory=dict)
    """The objects that were read before, by name; None: ignored from now on."""

    def post(self, draft: Draft, *, possible_since: int, time: int) -> None:
        """Stores the draft for other writers to commit.  If the store refuses, its writer commits it alone."""
        data = self.codec.encode(request_of(draft, possible_since=possible_since, time=time))
        if len(data) <= MAX_REQUEST_BYTES:
            with contextlib.suppress(Unavailable):
                # not durable: a crash of the machine loses only the request (decision 23)
                self.store.put(naming.request(self.journal, draft.id), data)
                log.info("%s: posted a request for %s, %d bytes", self.journal, draft.id, len(data))

    def withdraw(self, id: str) -> None:
        """Deletes a request that is decided or expired; if the store refuses, it stays."""
        with contextlib.suppress(Unavailable):
            self.store.delete(naming.request(self.journal, id))

    def overlook(self, name: str) -> None:
        """Ignores the object from now on, in this process."""
        self._read_before[name] = None

    def queue(self) -> list[ObjectInfo]:
        """Returns the objects that may be requests, oldest first; an empty list if the store does not answer."""
        try:
            listed = [
                info for info in self.store.list(naming.requests(self.journal)) if _may_be_request(info)
            ]
        except Unavailable:  # requests of other writers are no reason to fail
            return []
        for name in self._read_before.keys() - {info.name for info in listed}:
            del self._read_before[name]
        return [info for info in listed if self._read_before.get(info.name, ...) is not None]

    def read(
        self,
        queue: Iterable[ObjectInfo],
        *,
        at_once: Callable[
            [Callable[[str], DraftRequest | None], list[str]], Iterable[DraftRequest | None]
        ] = map,
    ) -> list[DraftRequest]:
        """Returns the first requests of the queue, at most as many as one entry can hold.  `at_once` may read
        several in parallel.  Unreadable objects are ignored from now on."""
        requests: list[DraftRequest] = []
        size = 0
        for batch in _batches(itertools.islice(queue, MAX_QUEUE)):
            unread = [info.name for info in batch if info.name not in self._read_before]
            for name, request in zip(unread, at_once(self._read, unread), strict=True):
                self._read_before[name] = request
            for info in batch:
                request = self._read_before.get(info.name)
                if request is None:
                    continue
                size += info.size
                if len(requests) >= MAX_REQUESTS or size > MAX_REQUEST_BYTES:
                    return requests
                requests.append(request)
        return requests

    def _read(self, name: str) -> DraftRequest | None:
        """Returns the request; None if its writer withdrew it meanwhile or it cannot be read."""
        with contextlib.suppress(Unavailable, Corrupt):
            data = self.store.get(name)
            request = None if data is None else self.codec.decode(data, name=name)
            if request is not None and request.id == naming.request_id(name) and request.draft:
                return request
        log.debug("%s: no readable request; overlooked", name)
        return None


def _may_be_request(info: ObjectInfo) -> bool:
    """Whether the object has the name and the size of a request."""
    is_named = naming.is_request(info.name) and is_id(naming.request_id(info.name))
    return is_named and 0 < info.size <= MAX_REQUEST_BYTES


def _batches(queue: Iterable[ObjectInfo]) -> Iterator[list[ObjectInfo]]:
    """Yields the queue in batches, each as large as one entry can hold."""
    batch: list[ObjectInfo] = []
    size = 0
    for info in queue:
        if batch and (len(batch) >= MAX_REQUESTS or size + info.size > MAX_REQUEST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(info)
        size += info.size
    if batch:
        yield batch
