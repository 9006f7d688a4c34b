"""Locks for stores without create-only put: files of a shared folder, or a PostgreSQL server.

    file:///shared/folder          for writers on one machine, or on a file system whose flock reaches all of them
    postgresql://user@host/db      for writers anywhere; nothing is stored in the database

The system releases both if their holder dies.  `open_store` calls `open_lock`.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import logging
import os
import random
import re
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from lake_core.errors import InvalidInput, Unavailable
from log_lake.extras import need
from log_lake.stores.locked import Lock, LockCheck

if TYPE_CHECKING:
    import psycopg

log = logging.getLogger(__name__)

LOCK_SECONDS = 60.0
"""How many seconds a writer waits until another one releases the lock of a name, and for an answer of the lock's
server. The store's budget may set another time (`patience`)."""

_FILES = 256
"""The number of lock files. Writers of two names that share a file wait for each other."""

_CONNECT_SECONDS = 10

_SHORTEST_CONNECT = 2
"""Seconds: libpq accepts no shorter timeout."""

_MARGIN_SECONDS = 2.0
"""How many seconds the server's timeout for the lock is shorter than the client's, so that the server can still
answer that the lock was not free."""

_LONG_WAIT_SECONDS = 1.0
"""If a writer waited more seconds than this for a lock, it logs that."""


def open_lock(address: str, *, patience: float = LOCK_SECONDS) -> Lock:
    """Returns the lock at an address; sends no request.  Raises InvalidInput."""
    try:
        parsed = urlparse(address)
    except ValueError as error:  # its text may hold the password
        raise InvalidInput("lock: not an address; escape signs such as [ in its password (%5B)") from error
    if parsed.scheme == "file" and not parsed.netloc and parsed.path.strip("/"):
        return FileLock(unquote(parsed.path), patience=patience)
    if parsed.scheme in ("postgresql", "postgres"):
        need("locks", "a lock on PostgreSQL")
        return PostgresLock(address, patience=patience)
    # the address may hold a password: show only its scheme
    raise InvalidInput(f"lock {parsed.scheme or '?'}: use file:///FOLDER or postgresql://USER@HOST/DATABASE")


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=8).digest()


class FileLock:
    """A lock by `flock` on one of `_FILES` files, chosen by the name's hash.

    The files are never removed: removing a file that a writer waits for would turn one lock into two.  If a
    user removes one nevertheless, the holder notices at its next check.
    """

    kind = "file"

    def __init__(self, folder: str, *, patience: float = LOCK_SECONDS) -> None:
        self._folder, self._patience = os.path.abspath(folder), patience

    @contextlib.contextmanager
    def hold(self, name: str) -> Iterator[LockCheck]:
        path = f"{self._folder}/{int.from_bytes(_digest(name)) % _FILES:03d}.lock"
        try:
            os.makedirs(self._folder, exist_ok=True)
            handle = self._locked(path)
        except OSError as error:
            raise Unavailable(f"lock {path}: {error.strerror}") from error

        def check() -> None:
            if not _is_file(handle, path):
                raise Unavailable(
                    f"lock {path}: another process removed the file while this one held the lock; try again"
                )

        try:
            yield check
            check()
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # a child process may have inherited the handle
            os.close(handle)

    def _locked(self, path: str) -> int:
        begun = time.monotonic()
        deadline = begun + self._patience
        pause = 0.001
        while True:  # bounded by the deadline
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_file(handle, path):
                    _log_wait(f"lock {path}", begun)
                    return handle
            os.close(handle)
            if time.monotonic() > deadline:
                raise Unavailable(f"lock {path}: held by another writer for {self._patience:.0f} s")
            time.sleep(pause * random.random())
            pause = min(pause * 2, 0.05)


def _log_wait(lock: str, begun: float) -> None:
    waited = time.monotonic() - begun
    log.log(logging.INFO if waited > _LONG_WAIT_SECONDS else logging.DEBUG, "%s: waited %.3f s", lock, waited)


def _is_file(handle: int, path: str) -> bool:
    """Whether the path still names the open file."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), os.stat(path))
    return False


@functools.cache
def _patient(seconds: float) -> type[psycopg.Connection[Any]]:
    """Returns a class of connections that wait at most so long for each answer: a server that hangs ends no
    statement itself."""
    import psycopg

    class Patient(psycopg.Connection[Any]):
        def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
            return super().wait(gen, interval=interval, timeout=seconds if timeout is None else timeout)

    return Patient


class PostgresLock:
    """A lock by the advisory lock of a transaction; PostgreSQL releases it when the transaction or its connection
    ends.

    A connection serves one writer at a time and is kept for the next one, so a process opens as many as it has
    creates at once.  A connection pooler may stand in between, because it keeps a transaction on one
    connection.
    """

    kind = "postgresql"

    def __init__(self, address: str, *, patience: float = LOCK_SECONDS) -> None:
        self._address, self._patience = address, patience
        self._idle: list[psycopg.Connection[Any]] = []
        self._process = os.getpid()
        self._forked: list[psycopg.Connection[Any]] = []
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def hold(self, name: str) -> Iterator[LockCheck]:
        import psycopg

        key = int.from_bytes(_digest(name), signed=True)
        connection = self._begin(key)

        def check() -> None:
            try:
                connection.execute("SELECT 1")
            except psycopg.Error as error:
                raise self._unavailable(error) from error

        try:
            yield check
            try:
                connection.commit()  # succeeds only if the connection held the lock all the time
            except psycopg.Error as error:
                raise self._unavailable(error) from error
        except BaseException:
            connection.close()
            raise
        with self._guard:
            self._idle.append(connection)

    def _begin(self, key: int) -> psycopg.Connection[Any]:
        """Returns a connection in a transaction that holds the lock.

        If a kept connection has died meanwhile, it tries another one.  Raises Unavailable.
        """
        import psycopg

        begun = time.monotonic()

        while True:  # bounded by the connections kept: a new one is tried last
            connection = self._kept()
            is_new = connection is None
            try:
                if connection is None:
                    connection = _patient(self._patience + _MARGIN_SECONDS).connect(
                        self._address,
                        connect_timeout=max(_SHORTEST_CONNECT, min(_CONNECT_SECONDS, int(self._patience))),
                        fallback_application_name="lake",
                        prepare_threshold=None,  # poolers lose prepared statements
                    )
                connection.execute(
                    "SELECT set_config('lock_timeout', %s, true), "
                    "set_config('idle_in_transaction_session_timeout', '0', true)",
                    [f"{max(1, int(self._patience * 1000))}ms"],
                )
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [key])
            except psycopg.Error as error:
                was_cut = connection is None or connection.closed
                if connection is not None:
                    connection.close()
                if is_new or not was_cut:
                    raise self._unavailable(error) from error
            else:
                _log_wait(f"lock on PostgreSQL, key {key}", begun)
                return connection

    def _kept(self) -> psycopg.Connection[Any] | None:
        with self._guard:
            if self._process != os.getpid():  # a forked child must not use its parent's connections
                self._process, self._forked = os.getpid(), self._idle
                self._idle = []
            return self._idle.pop() if self._idle else None

    def _unavailable(self, error: Exception) -> Unavailable:
        host = urlparse(self._address).hostname or "localhost"
        reason = " ".join(str(error).split()) or type(error).__name__
        user = self._address.partition("://")[2].rpartition("@")[0]
        # libpq repeats parts of a wrong address
        for part in filter(None, re.split("[:@]", user.partition(":")[2])):
            reason = reason.replace(part, "***")
        if getattr(error, "sqlstate", None) == "55P03":
            reason = f"held by another writer for {self._patience:.0f} s"
        return Unavailable(f"lock on PostgreSQL at {host}: {reason}")
