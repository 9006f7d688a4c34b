"""Splits, inlined loads and bulk imports that are killed at each of their requests: nothing is lost, doubled or
unreadable.

    LAKE_TEST_CEPH=1 LAKE_TEST_KILLS=300 pytest -q -s tests/contract/test_killed_at_each_request.py

With LAKE_TEST_CEPH=1 the server is Ceph's gateway, otherwise moto.  Without LAKE_TEST_KILLS each eleventh request
counts.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.kills.each_request import killed
from tests.support.servers.s3 import BUCKET

KILLS = int(os.environ.get("LAKE_TEST_KILLS", "0"))
STEP = 1 if KILLS else 11
SECONDS = 600
"""Seconds without an end are too many: a kill takes one or two of them, on a busy machine ten."""


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 20 * KILLS)
@pytest.mark.parametrize("place", ["folder", "s3"])
def test_what_is_killed_at_a_request_is_there_once_or_not_at_all(
    place: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if place == "folder":
        uri, options = str(tmp_path / "lake"), {}
    else:
        ceph = os.environ.get("LAKE_TEST_CEPH") == "1"
        uri = f"s3://{BUCKET}/killed-at-each-request"
        options = request.getfixturevalue("ceph_options" if ceph else "s3_options")
    said = killed(uri, options, kills=KILLS, step=STEP)
    print(json.dumps({"place": place, **said}, indent=1))
    assert said["kills"] >= max(KILLS, 12)
