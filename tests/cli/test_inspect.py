"""`lake inspect`: every kind of object that lies beside the data, as JSON that people can read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lake_core import naming
from lake_core.history.group_commit.requests import Requests
from log_lake.stores import open_store
from tests.support.command import CORRUPT, INVALID_INPUT, NOT_FOUND, Command
from tests.support.records import SCHEMA, add, an_id, draft


@pytest.fixture
def journal(lake: Command) -> str:
    """The journal of a pool of two transactions and a rejected record, with a checkpoint and a fence at 2."""
    lake.pool("p", bad_records="quarantine")
    lake.load_records("p", [{"k": 1}], "1.ndjson")
    lake.load_records("p", '{"k": 5}\nnonsense\n', "2.ndjson")
    lake("checkpoint", "p")
    lake("purge", "p", "--keep", "0s")
    (pool,) = [path.parent for path in Path(lake.uri).glob("*/journal") if path.parent.name != "pools"]
    return f"{pool.name}/journal"


def mark(lake: Command, journal: str, ending: str) -> str:
    """The name of the journal's only mark of a kind."""
    (found,) = (Path(lake.uri) / naming.marks(journal)).glob(f"*.{ending}")
    return str(found.relative_to(lake.uri))


def inspected(lake: Command, name: str) -> dict[str, Any]:
    (found,) = lake("inspect", name, "--json").records
    return dict(found)


def posted(lake: Command, journal: str) -> str:
    """The name of a request that waits."""
    asked = draft(7, add(7), token="t", schemas=(SCHEMA,))
    Requests(open_store(lake.uri), journal).post(asked, possible_since=2, time=1_000_000)
    return naming.request(journal, an_id(7))


def test_a_fence_tells_up_to_where_entries_are_purged(lake: Command, journal: str) -> None:
    name = mark(lake, journal, "fence")
    assert inspected(lake, name) == {"name": name, "bytes": 1, "fence": 2, "text": "2"}


def test_a_request_shows_the_transaction_that_waits(lake: Command, journal: str) -> None:
    name = posted(lake, journal)
    found = inspected(lake, name)
    assert found["name"] == name
    assert found["bytes"] == (Path(lake.uri) / name).stat().st_size
    assert {key: found[key] for key in ("id", "seen", "time", "branch", "token")} == {
        "id": an_id(7),
        "seen": 2,
        "time": 1_000_000,
        "branch": "main",
        "token": "t",
    }
    assert [(a["type"], a["object"]) for a in found["actions"]] == [("add_object", an_id(7))]
    assert [list(schema) for schema in found["schemas"]] == [SCHEMA.names], "schemas are told by their fields"


def test_a_checkpoint_shows_what_it_holds(lake: Command, journal: str) -> None:
    name = mark(lake, journal, "checkpoint")
    found = inspected(lake, name)
    assert (found["name"], found["version"], found["format"], found["journal"]) == (name, 2, 1, journal)
    assert found["bytes"] == (Path(lake.uri) / name).stat().st_size
    parts = {(p["section"], p["branch"], p["sub_pool"]): p for p in found["parts"]}
    assert {part: shown["rows"] for part, shown in parts.items()} == {
        ("recent", "", ""): 2,
        ("branch", "", ""): 1,
        ("reference", "main", ""): 2,
        ("reference", "main", "$rejected"): 1,
        ("schema", "", ""): 2,
    }
    assert found["rows"] == 8
    assert parts["branch", "", ""]["first"] == "main"
    low = parts["reference", "main", ""]["first"]
    assert low < parts["reference", "main", ""]["last"]
    assert low.startswith("03"), "encoded keys are in hex"
    assert found["branch"]["main"]["tip"] == 2
    assert {"k": "bigint"} in found["schema"].values()


def test_split_points_are_shown_encoded(lake: Command, journal: str) -> None:
    lake("split", "p", "--at", "3", "--at", "4")
    lake("checkpoint", "p")
    newest = max(path.name for path in (Path(lake.uri) / naming.marks(journal)).glob("*.checkpoint"))
    found = inspected(lake, f"{naming.marks(journal)}/{newest}")
    assert found["format"] == 2
    (part,) = [part for part in found["parts"] if part["section"] == "point"]
    entry = inspected(lake, naming.entry(journal, found["version"]))
    assert [part["first"], part["last"]] == entry["transactions"][0]["actions"][0]["points"]


def test_a_checkpoint_of_the_list_of_pools_shows_the_pools(lake: Command, journal: str) -> None:
    lake("checkpoint", "lake:pools")
    found = inspected(lake, mark(lake, naming.POOLS_JOURNAL, "checkpoint"))
    assert [pool["name"] for pool in found["pool"].values()] == ["p"]
    assert [p["section"] for p in found["parts"]] == ["recent", "pool"]


def test_for_people_each_field_has_a_line_and_the_content_is_the_same(lake: Command, journal: str) -> None:
    for name in (mark(lake, journal, "checkpoint"), mark(lake, journal, "fence"), posted(lake, journal)):
        said = lake("inspect", name).out
        assert json.loads(said) == inspected(lake, name)
        assert f'\n  "name": "{name}",\n' in said


def test_what_is_damaged_is_named(lake: Command, journal: str) -> None:
    for name in (mark(lake, journal, "checkpoint"), posted(lake, journal)):
        (Path(lake.uri) / name).write_bytes(b"noise")
        assert name in lake.fails(CORRUPT, "inspect", name)


def test_a_checkpoint_that_is_not_there_is_not_found(lake: Command, journal: str) -> None:
    missing = naming.checkpoint(journal, 9, an_id(9))
    assert "does not exist" in lake.fails(NOT_FOUND, "inspect", missing)
    assert "does not exist" in lake.fails(NOT_FOUND, "inspect", naming.fence(journal, 9))


@pytest.mark.parametrize("name", ["../outside", "/etc/hosts", "pools//x", "pools/"])
def test_a_name_that_leads_out_of_the_lake_is_refused_as_input(lake: Command, name: str) -> None:
    assert "a name has no empty part" in lake.fails(INVALID_INPUT, "inspect", name)
