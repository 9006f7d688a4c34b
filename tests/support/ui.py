"""Runs `lake ui`, as a person starts it, and sends raw requests to it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from log_lake.view.listening import ADDRESS
from tests.support.repository import ROOT


@dataclass(frozen=True)
class Served:
    """A running `lake ui`: its address, the folder of its lake, and its process."""

    address: str
    folder: Path
    process: subprocess.Popen[str]

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    @property
    def path(self) -> str:
        """The path of the page, with the token."""
        return urlsplit(self.address).path

    def ask(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
        """Sends a request. Returns the status, the body and the headers of the answer; the host is right unless it
        is given."""
        connection = http.client.HTTPConnection(ADDRESS, self.port, timeout=600)
        sent = {"Host": f"{ADDRESS}:{self.port}", **headers}
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()


@contextmanager
def serving(folder: Path, *more: str, **environ: str) -> Iterator[Served]:
    """Runs `lake ui` on the lake in the folder, named as `./NAME`, while the block runs, which begins after the
    line with its address.

    `more` are further arguments of the command.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "log_lake.cli.main", "ui", "--lake", f"./{folder.name}", "--json", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        yield Served(json.loads(process.stdout.readline())["address"], folder, process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(
                600
            )  # and not for the end of its output, which a browser that it began may hold open
        process.stdout.close()
        process.stderr.close()
