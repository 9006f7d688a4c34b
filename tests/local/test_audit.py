"""`make audit`: pip-audit where its service can be reached, one line where it cannot; and the bill of materials."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from local.audit import audit
from tests.support.repository import ROOT


def test_an_audit_that_cannot_be_made_says_so_in_one_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said: list[str] = []
    assert audit(("127.0.0.1", port), seconds=2.0, run=lambda command: 1, say=said.append) == 0
    (line,) = said
    assert line.startswith("audit: not run, since 127.0.0.1 cannot be reached")


@pytest.mark.parametrize("status", [0, 1])
def test_the_status_of_an_audit_is_that_of_pip_audit(status: int) -> None:
    ran: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> int:
        ran.append(command)
        return status

    with socket.create_server(("127.0.0.1", 0)) as server:
        assert audit(server.getsockname(), run=run) == status
    (command,) = ran
    assert command[-1] == str(ROOT / "requirements.txt")
    assert "--require-hashes" in command


def test_the_bill_of_materials_names_what_the_lock_names(tmp_path: Path) -> None:
    """As `make wheel` writes it."""
    (recipe,) = re.findall(
        r"@(\S+/uv export .*sbom-export .*)\\$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    file = tmp_path / "bill.cdx.json"
    words = recipe.split()
    subprocess.run([*words, "--output-file", str(file)], cwd=ROOT, check=True, capture_output=True)
    bill = json.loads(file.read_text())
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "log-lake"
    named = {(one["name"], one["version"]) for one in bill["components"]}
    locked = set(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    assert {("pyarrow", version) for name, version in locked if name == "pyarrow"} <= named
    assert named <= locked
