"""Commands on S3 that are killed while requests and answers are lost: no record differs, and every command ends.

    LAKE_TEST_CEPH=1 LAKE_TEST_KILLS=200 .venv/bin/python -m pytest tests/contract/test_killed_commands.py -q -s

With LAKE_TEST_CEPH=1 the server is Ceph's gateway, otherwise moto.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.support.kills.lost_answers.drill import LONGEST
from tests.support.kills.lost_answers.run import drilled
from tests.support.servers.s3 import BUCKET

KILLS = int(os.environ.get("LAKE_TEST_KILLS", "10"))
SEED = int(os.environ.get("LAKE_TEST_SEED", "1"))
SHARE = 0.06
"""Of all requests, those that are lost, late, slow or refused."""

SECONDS = 60
"""Seconds for a kill with all that follows; on a busy machine half of them were seen."""


@pytest.fixture
def server(request: pytest.FixtureRequest) -> dict[str, Any]:
    """How a client reaches the S3 server."""
    name = "ceph_options" if os.environ.get("LAKE_TEST_CEPH") == "1" else "s3_options"
    options: dict[str, Any] = request.getfixturevalue(name)
    return options


@pytest.mark.slow
@pytest.mark.timeout(LONGEST + SECONDS * KILLS)
def test_killed_commands_on_a_store_that_loses_answers_change_what_they_say_and_end(
    server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_S3", json.dumps(server))
    said = json.loads(drilled(f"s3://{BUCKET}/killed-commands", kills=KILLS, seed=SEED, share=SHARE))
    assert said["kills"] >= KILLS
    assert said["compared"] > said["kills"]
    assert any(name.startswith("kill ") for name in said["trouble"])
    assert said["committed though killed"] or said["kills"] < 50, "kills come too early to be of use"
