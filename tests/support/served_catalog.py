"""A running `lake serve`, as a person starts it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.support.repository import ROOT


@dataclass(frozen=True)
class ServedCatalog:
    """A running `lake serve`: its address and its process."""

    address: str
    process: subprocess.Popen[str]

    def ask(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, bytes]:
        """The status and the body of an answer; the path is sent as it is, the host is right unless given."""
        place = urlsplit(self.address).netloc
        connection = http.client.HTTPConnection(place, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": place, **headers}.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@contextmanager
def serving_catalog(lake: str, *more: str, **environ: str) -> Iterator[ServedCatalog]:
    """`lake serve` on a free port, from its first answer to its end; `more` are arguments of the command."""
    words = [
        sys.executable,
        "-m",
        "log_lake.cli.main",
        "serve",
        "--lake",
        lake,
        "--port",
        "0",
        "--json",
        *more,
    ]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        yield ServedCatalog(json.loads(process.stdout.readline())["address"], process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(60)
        process.stdout.close()
        process.stderr.close()
