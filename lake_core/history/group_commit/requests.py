"""Requests: transactions that ask to be committed by whoever writes the next entry (group commit).

A writer that has lost two races, or met others at one of its last commits, leaves its draft as an object of its
own; the winner of a number takes all the requests that it sees into its entry.  Who waits lets those go first whose
requests are older, for a while.  Why each is committed once, whoever dies where:

- a request names the entry that its writer had `seen`; it may be committed while the ids of all entries since
  are among the recent ones (`journal.recent`), so every combiner knows whether it was; and not when it is old
  by the clock, for what it rests on (a token, objects that were never referred to) is not kept for ever;
- its writer folds every entry before it tries the next number, and finds its id there if somebody was faster;
- a draft that is refused once is refused for ever after (`landing`), so a writer that reports a refusal need
  not fear that somebody commits it yet; a combiner takes no draft of sources of which it knows another form.

What nobody can commit any more is withdrawn by the combiner that sees it, or dead writers' requests would pile up.

What cannot be read, or is no request, is nobody's company: an empty file of a full disk, another user's file that
may be neither read nor deleted, anything that somebody put there.  Each process looks at it once, and from then on
it is not in the line: nobody waits for it, reads it again or tries to delete it again.  To overlook a request does
no harm, since its writer commits it too.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from lake_core import naming
from lake_core.errors import Corrupt, Unavailable
from lake_core.history.rebase import Draft
from lake_core.journal.recent import generation
from lake_core.records import Action
from lake_core.records.codec import Codec
from lake_core.store import ObjectInfo, Store

MAX_REQUESTS = 256
"""How many requests one entry takes in."""

MAX_REQUEST_BYTES = 4_000_000
"""What the requests of one entry take, and so each of them: an entry is one small object."""

MAX_QUEUE = 1024
"""How many objects of the line a writer looks at: what lies there for ever must not hide what waits behind it."""


MAX_WAIT_MICROSECONDS = 600 * 1_000_000
"""Microseconds for which a request may be committed by others; where clocks differ by more, each writer commits
for itself."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """A draft as it waits to be committed."""

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

    @property
    def draft(self) -> Draft:
        """The draft again.  Raises Corrupt."""
        try:
            schemas = tuple(pa.ipc.read_schema(pa.py_buffer(s)) for s in self.schemas)
        except (OSError, pa.ArrowException) as error:
            raise Corrupt(f"request {self.id}: a schema cannot be read: {error}") from error
        return Draft(
            self.id,
            self.branch,
            self.read_version,
            self.author,
            self.actions,
            schemas,
            self.message,
            self.token,
        )

    def may_be_committed_at(self, version: int, *, now: int) -> bool:
        """Whether an entry `n` may hold it: later ones could not know whether an earlier one does, and a request
        of long ago is a dead writer's, whose token and objects may be gone."""
        return (
            generation(version) <= generation(self.possible_since) + 1
            and abs(now - self.time) <= MAX_WAIT_MICROSECONDS
        )


_CODEC = Codec(Request)


def request_of(draft: Draft, *, possible_since: int, time: int) -> Request:
    """The draft as a request."""
    schemas = tuple(s.serialize().to_pybytes() for s in draft.schemas)
    return Request(
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
    )


@dataclass(frozen=True)
class Requests:
    """The requests of one journal."""

    store: Store
    journal: str
    _known: dict[str, Request | None] = field(default_factory=dict)
    """By name what was looked at: None is nobody's company."""

    def post(self, draft: Draft, *, possible_since: int, time: int) -> None:
        """Leave the draft for others to commit.  Whether it arrives is of no consequence."""
        data = _CODEC.encode(request_of(draft, possible_since=possible_since, time=time))
        if len(data) <= MAX_REQUEST_BYTES:
            with contextlib.suppress(Unavailable):
                # not durably: no crash of a machine can lose more than the asking
                self.store.put(naming.request(self.journal, draft.id), data)

    def withdraw(self, id: str) -> None:
        """Take a request away whose outcome is known."""
        with contextlib.suppress(Unavailable):
            self.store.delete(naming.request(self.journal, id))

    def overlook(self, name: str) -> None:
        """From now on it is not in the line."""
        self._known[name] = None

    def queue(self) -> list[ObjectInfo]:
        """All requests, oldest first, as far as they may be some; nothing where the store does not say."""
        try:
            listed = [info for info in self.store.list(naming.requests(self.journal)) if _may_be_one(info)]
        except Unavailable:  # others' requests are no reason to fail
            return []
        for name in self._known.keys() - {info.name for info in listed}:
            del self._known[name]
        return [info for info in listed if self._known.get(info.name, ...) is not None]

    def read(
        self,
        queue: Iterable[ObjectInfo],
        *,
        at_once: Callable[[Callable[[str], Request | None], list[str]], Iterable[Request | None]] = map,
    ) -> list[Request]:
        """The first of the line, as much as one entry can take; `at_once` may read several at once.

        Those that cannot be read are passed by, now and later.
        """
        taken: list[Request] = []
        size = 0
        for batch in _batches(itertools.islice(queue, MAX_QUEUE)):
            unknown = [info.name for info in batch if info.name not in self._known]
            for name, request in zip(unknown, at_once(self._read, unknown), strict=True):
                self._known[name] = request
            for info in batch:
                request = self._known.get(info.name)
                if request is None:
                    continue
                size += info.size
                if len(taken) >= MAX_REQUESTS or size > MAX_REQUEST_BYTES:
                    return taken
                taken.append(request)
        return taken

    def _read(self, name: str) -> Request | None:
        """The request, None where its outcome was known in the meantime or it cannot be read."""
        with contextlib.suppress(Unavailable, Corrupt):
            data = self.store.get(name)
            request = None if data is None else _CODEC.decode(data, name=name)
            if request is not None and request.id == naming.request_id(name) and request.draft:
                return request
        return None


def _may_be_one(info: ObjectInfo) -> bool:
    """Whether name and size are those of a request."""
    is_named = naming.is_request(info.name) and naming.is_id(naming.request_id(info.name))
    return is_named and 0 < info.size <= MAX_REQUEST_BYTES


def _batches(queue: Iterable[ObjectInfo]) -> Iterator[list[ObjectInfo]]:
    """As many at once as one entry can take."""
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
