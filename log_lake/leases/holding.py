"""Holds a lease: creates it, writes it again while work continues, and deletes it at the end.

A writer's lease is created late: once the work has lasted for a while (`after`).  Most loads end before that,
and send no request for it.

A thread writes it every third of its ttl, so two writes may fail before it dies.  The thread ends with the
block, and with the process.  A process that is suspended for longer than the ttl loses the lease: `is_lost` is
then true, by the process's own count of seconds; objects that it reads afterwards may be deleted.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from types import TracebackType

import msgspec

from lake_core import naming
from lake_core.errors import Denied, LakeError, Unavailable
from lake_core.store import Store
from lake_core.store.probe import is_there
from log_lake.leases.alarm import ALARM
from log_lake.leases.lease import MAX_TTL, READ, LeaseNote

log = logging.getLogger(__name__)

TRIES = 3
"""How often creating a lease is tried if the answer is lost."""


class HeldLease:
    """A lease that is renewed within the block; with `renewing=False` only when `renew` is called.

    `after`: seconds from the begin of the block until the lease is created.  `optional`: a process that may
    not write continues without a lease; by default readers do.
    """

    def __init__(
        self,
        store: Store,
        pool_id: str,
        id: str,
        note: LeaseNote,
        *,
        renewing: bool = True,
        after: float = 0.0,
        optional: bool | None = None,
    ) -> None:
        self.id, self.note = id, note
        self.name = naming.lease(pool_id, id)
        self._store, self._ttl, self._after = store, min(note.ttl, MAX_TTL), after
        self._renewing = renewing
        self.is_optional = note.kind == READ if optional is None else optional
        self._ended = threading.Event()
        self._lock = threading.RLock()  # a finalizer may end the block while it begins
        self._thread: threading.Thread | None = None
        self._is_begun = False
        self._written = 0.0
        self._was_lost = False

    def __enter__(self) -> HeldLease:
        if self._after:
            ALARM.set(self, self._after, self._begin)
            return self
        try:
            self.take()
        except Denied as error:
            if not self.is_optional:
                raise
            log.info("goes on without a lease: %s", error)
            return self
        self._begin()
        return self

    def _begin(self) -> None:
        """Starts the thread that writes the lease, unless the block has ended."""
        with self._lock:
            if self._ended.is_set():
                return
            self._is_begun = True
            if self._renewing:
                self._thread = threading.Thread(target=self._keep, name=f"lease-{self.id}", daemon=True)
                self._thread.start()

    def take(self) -> None:
        """Creates the lease.  Without the block it is neither renewed nor deleted: it dies after its ttl.

        Raises Unavailable.
        """
        begun = time.monotonic()
        for _ in range(TRIES):
            if is_there(self._store, self.name, self._store.create(self.name, self.note.encode())):
                break
        else:
            raise Unavailable(f"{self.name}: the store does not show that it has this lease; try again")
        self._written = begun

    def renew(self) -> None:
        """Writes the lease again.  Raises Unavailable."""
        self._was_lost = self.is_lost
        begun = time.monotonic()
        self._store.put(self.name, self.note.encode())
        self._written = begun

    def move(self, version: int) -> None:
        """Makes the lease hold a later version from the next renewal on: the work no longer needs the earlier
        ones."""
        self.note = msgspec.structs.replace(self.note, version=version)

    @property
    def is_lost(self) -> bool:
        """Whether the lease may have died, even if it was written again afterwards."""
        return self._was_lost or (self._written > 0 and time.monotonic() - self._written > self._ttl)

    def _keep(self) -> None:
        pause = self._ttl / 3 if self._written else 0.0
        while not self._ended.wait(pause):  # ends with the block
            try:
                if self._written:
                    self.renew()
                else:
                    self.take()
                pause = self._ttl / 3
            except LakeError as error:
                log.warning("lease %s was not written: %s", self.id, error)
                pause = self._ttl / 12

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ALARM.cancel(self)
        with self._lock:
            self._ended.set()
        if not self._is_begun:
            return
        if self._thread is not None:
            self._thread.join()  # otherwise a renewal could bring the lease back
        with contextlib.suppress(LakeError):  # it dies by itself
            self._store.delete(self.name)
