"""Transactions over four pools, killed at random moments, in a folder and on an S3 server.

    LAKE_TEST_KILLS=300 LAKE_TEST_CEPH=1 .venv/bin/python -m pytest -s tests/contract/test_killed_transactions.py

kills so many processes in each place, on a real S3 server.  Without the variables it kills a few, and S3 is moto.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.support.kills.killed_transactions import Place, stress
from tests.support.kills.transaction_account import ROWS, Account
from tests.support.servers.s3 import BUCKET

KILLS = int(os.environ.get("LAKE_TEST_KILLS", "6"))
MANY = 100
"""Kills of which some fall at each moment of a transaction, and a third of the commits are acknowledged."""
MOMENTS = {"folder": (0.7, 0.3), "s3": (2.0, 1.5)}
"""Seconds between kills, and those that a commit takes: with less, no process lives until a commit ends."""


@pytest.mark.slow
@pytest.mark.timeout(900 + 20 * KILLS)
@pytest.mark.parametrize("where", ["folder", "s3"])
def test_a_transaction_is_whole_whoever_is_killed(
    where: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if where == "folder":
        uri, options = str(tmp_path / "lake"), {}
    else:
        ceph = os.environ.get("LAKE_TEST_CEPH") == "1"
        uri = f"s3://{BUCKET}/killed-transactions"
        options = request.getfixturevalue("ceph_options" if ceph else "s3_options")
    notes = tmp_path / "notes"
    notes.mkdir()
    moment, commit = MOMENTS[where]
    said = stress(Place(uri, options, notes), kills=KILLS, moment=moment, commit=commit, waits=KILLS >= MANY)
    print(json.dumps({"where": where, **said}, indent=1))
    assert said["killed"] == KILLS
    assert said["acknowledged"] > 0
    assert said["transactions seen by a reader"] > 0
    if KILLS >= MANY:
        assert said["acknowledged"] * 3 >= said["commits begun"]
        for when in (
            "before a commit",
            "in a commit, before its decision",
            "in a commit, after its decision",
        ):
            assert said[f"killed {when}"] > 0


@pytest.fixture
def account() -> Account:
    """One acknowledged transaction over two pools, whose commit began at 10."""
    account = Account()
    for line in (
        {"begun": "t", "id": "1", "pools": ["a", "b"], "at": 9.0},
        {"committing": "t", "at": 10.0},
        {"acknowledged": "t", "at": 12.0},
    ):
        account.take(line)
    return account


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ({"a": {"t": ROWS}, "b": {"t": ROWS}}, []),
        ({"a": {"t": ROWS}, "b": {}}, ["half: t over ['a', 'b'] is in ['a']"]),
        ({"a": {}, "b": {}}, ["lost: t was acknowledged"]),
        ({"a": {"t": ROWS}, "b": {"t": 2 * ROWS}}, [f"t has {2 * ROWS} records in b"]),
        ({"a": {"t": ROWS, "u": ROWS}, "b": {"t": ROWS}}, ["nobody wrote ['u']"]),
    ],
)
def test_the_account_finds_what_is_wrong_in_the_end(
    account: Account, found: dict[str, dict[str, int]], wrong: list[str]
) -> None:
    account.check_end({pool: Counter(writes) for pool, writes in found.items()})
    assert account.wrong == wrong


@pytest.mark.parametrize(
    ("new", "ended", "wrong"),
    [
        ({"t": ["a", "b"]}, 11.5, []),
        ({"t": ["a"]}, 11.5, ["t over ['a', 'b'] is seen in ['a']"]),
        ({"t": ["a", "b"]}, 9.5, ["t is seen before its commit began"]),
    ],
)
def test_the_account_finds_what_a_reader_should_not_see(
    account: Account, new: dict[str, list[str]], ended: float, wrong: list[str]
) -> None:
    account.take_reads([{"began": ended - 1, "ended": ended, "new": new, "at": ended}])
    assert account.wrong == wrong


@pytest.mark.parametrize(
    ("decided", "is_wrong"), [({"1": (11.2, True)}, False), ({"1": (14.0, True)}, True), ({}, True)]
)
def test_the_account_finds_what_is_seen_before_its_decision(
    account: Account, decided: dict[str, tuple[float, bool]], is_wrong: bool
) -> None:
    account.take_reads([{"began": 11.0, "ended": 11.5, "new": {"t": ["a", "b"]}, "at": 11.5}])
    account.check_decisions(decided)
    assert bool(account.wrong) == is_wrong
