"""One turned bit in the newest checkpoint: every command goes on from an older one and entries, or from entries."""

from __future__ import annotations

import pytest

from log_lake.lake import Lake
from tests.support.command import DONE, Command
from tests.support.damage import turn_a_bit


@pytest.fixture(params=["reference", "token"])
def damaged(lake: Command, request: pytest.FixtureRequest) -> Command:
    """A pool with the keys 0 to 5, one of them deleted, and a checkpoint of which a page is damaged."""
    lake.pool("p")
    for k in range(6):
        lake.load_records("p", [{"k": k}], f"{k}.ndjson")
    assert lake.run("load", "p", str(lake.folder / "0.ndjson"), "--token", "t").status == DONE
    assert lake.run("delete", "p", "--key", "1").status == DONE
    assert lake.run("checkpoint", "p").status == DONE
    opened = Lake.open(lake.uri)
    mark = opened.pool("p").history.journal.marks().checkpoints[0]
    turn_a_bit(opened.store, mark.name, section=request.param)
    return lake


def test_the_command_and_sql_answer_as_if_nothing_had_happened(damaged: Command) -> None:
    keys = [{"k": k} for k in (0, 0, 2, 3, 4, 5)]
    assert damaged.run("scan", "p").records == keys
    assert damaged.run("get", "p", "3").records == [{"k": 3}]
    assert damaged.run("query", 'select k from "p" order by k').records == keys
    for words in (("show", "p"), ("log", "p"), ("compact", "p"), ("tombstones", "p", "--at-once")):
        assert damaged.run(*words).status == DONE
    assert damaged.run("load", "p", str(damaged.folder / "0.ndjson"), "--token", "t").status == DONE
    assert damaged.run("scan", "p").records == keys, "the token is known"


def test_the_next_checkpoint_is_sound_and_the_history_can_be_purged(damaged: Command) -> None:
    damaged.load_records("p", [{"k": 6}], "6.ndjson")
    assert damaged.run("checkpoint", "p").status == DONE
    assert damaged.run("purge", "p", "--keep", "0s").status == DONE
    assert damaged.run("scan", "p").records == [{"k": k} for k in (0, 0, 2, 3, 4, 5, 6)]
