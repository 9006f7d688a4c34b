"""Locks for stores without create-only put: files of a shared folder, or a PostgreSQL server.

    file:///shared/folder          for writers on one machine, or on a file system whose flock reaches all of them
    postgresql://user@host/db      for writers anywhere; nothing is stored in the database

Both are given back by the system when their holder dies.  `open_lock` is called by `open_store`.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import random
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from lake_core.errors import InvalidInput, Unavailable
from lake_core.extras import need
from lake_core.store.locked import Check, Lock

if TYPE_CHECKING:
    import psycopg

LOCK_SECONDS = 60.0
"""How many seconds a writer waits for another one to give the lock of a name back."""

_FILES = 256
_CONNECT_SECONDS = 10


def open_lock(address: str, *, patience: float = LOCK_SECONDS) -> Lock:
    """The lock at an address.  Nothing is requested of it yet.  Raises InvalidInput."""
    parsed = urlparse(address)
    if parsed.scheme == "file" and not parsed.netloc and parsed.path.strip("/"):
        return FileLock(unquote(parsed.path), patience=patience)
    if parsed.scheme in ("postgresql", "postgres"):
        need("locks", "a lock on PostgreSQL")
        return PostgresLock(address, patience=patience)
    # the address may hold a password: only its scheme is shown
    raise InvalidInput(f"lock {parsed.scheme or '?'}: use file:///FOLDER or postgresql://USER@HOST/DATABASE")


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=8).digest()


class FileLock:
    """`flock` on one of a few files, chosen by the name's hash.

    The files stay: removing a file that somebody waits for would make two locks of one.  Should somebody remove
    it all the same, the one who holds it learns so from the check.
    """

    kind = "file"

    def __init__(self, folder: str, *, patience: float = LOCK_SECONDS) -> None:
        self._folder, self._patience = os.path.abspath(folder), patience

    @contextlib.contextmanager
    def hold(self, name: str) -> Iterator[Check]:
        path = f"{self._folder}/{int.from_bytes(_digest(name)) % _FILES:03d}.lock"
        try:
            os.makedirs(self._folder, exist_ok=True)
            handle = self._locked(path)
        except OSError as error:
            raise Unavailable(f"lock {path}: {error.strerror}") from error

        def check() -> None:
            if not _is_file(handle, path):
                raise Unavailable(f"lock {path}: removed while it was held")

        try:
            yield check
            check()
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # a child process may have inherited the handle
            os.close(handle)

    def _locked(self, path: str) -> int:
        deadline = time.monotonic() + self._patience
        pause = 0.001
        while True:  # bounded by the deadline
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_file(handle, path):
                    return handle
            os.close(handle)
            if time.monotonic() > deadline:
                raise Unavailable(f"lock {path}: held by another writer for {self._patience:.0f} s")
            time.sleep(pause * random.random())
            pause = min(pause * 2, 0.05)


def _is_file(handle: int, path: str) -> bool:
    """Whether an open file is still the one of this name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), os.stat(path))
    return False


class PostgresLock:
    """A transaction's advisory lock; the end of the transaction, or of its connection, gives it back.

    A connection serves one writer at a time and is kept for the next: a process has as many as it has creates at
    once.  A transaction is what a connection pooler keeps on one connection, so it may stand in between.
    """

    kind = "postgresql"

    def __init__(self, address: str, *, patience: float = LOCK_SECONDS) -> None:
        self._address, self._patience = address, patience
        self._idle: list[psycopg.Connection[Any]] = []
        self._process = os.getpid()
        self._forked: list[psycopg.Connection[Any]] = []
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def hold(self, name: str) -> Iterator[Check]:
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
                connection.commit()  # only a connection that has held the lock all the time can
            except psycopg.Error as error:
                raise self._unavailable(error) from error
        except BaseException:
            connection.close()
            raise
        with self._guard:
            self._idle.append(connection)

    def _begin(self, key: int) -> psycopg.Connection[Any]:
        """A connection in a transaction that holds the lock.  One that was kept may have died since: then a new
        one is tried."""
        import psycopg

        while True:  # bounded by the connections kept: a new one is tried last
            connection = self._kept()
            is_new = connection is None
            try:
                if connection is None:
                    connection = psycopg.connect(
                        self._address,
                        connect_timeout=_CONNECT_SECONDS,
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
                return connection

    def _kept(self) -> psycopg.Connection[Any] | None:
        with self._guard:
            if self._process != os.getpid():  # a forked child must not speak on its parent's connections
                self._process, self._forked = os.getpid(), self._idle
                self._idle = []
            return self._idle.pop() if self._idle else None

    def _unavailable(self, error: Exception) -> Unavailable:
        host = urlparse(self._address).hostname or "localhost"
        reason = " ".join(str(error).split()) or type(error).__name__
        if getattr(error, "sqlstate", None) == "55P03":
            reason = f"held by another writer for {self._patience:.0f} s"
        return Unavailable(f"lock on PostgreSQL at {host}: {reason}")
