"""Runs PostgreSQL from Debian's packages on loopback, in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.servers.daemons import daemon, free_port, programs, run


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Runs the server while the block runs. Yields the address of an empty database."""
    path = programs(
        ("initdb", "postgres", "pg_isready"), packages=("postgresql",), where="/usr/lib/postgresql/*/bin"
    )
    user = "postgres" if os.geteuid() == 0 else ""  # it refuses to run as root; the package makes this user
    folder, port = Path(tempfile.mkdtemp(prefix="postgresql-")), free_port()
    try:
        if user:
            owner = pwd.getpwnam(user)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        data = folder / "data"
        run(
            *(path["initdb"], "--pgdata", data, "--username", "lake", "--auth", "trust"),
            *("--encoding", "UTF8", "--no-locale", "--no-sync"),
            user=user,
        )
        address = f"postgresql://lake@127.0.0.1:{port}/postgres"

        def answers() -> bool:
            try:
                run(path["pg_isready"], "--dbname", address, "--timeout", "1")
            except RuntimeError:
                return False
            return True

        with daemon(
            *(path["postgres"], "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", folder),
            *("-c", "fsync=off", "-c", "shared_buffers=16MB"),
            log=folder / "log",
            ready=answers,
            user=user,
            end=signal.SIGINT,  # does not wait for its clients
        ):
            yield address
    finally:
        shutil.rmtree(folder, ignore_errors=True)
