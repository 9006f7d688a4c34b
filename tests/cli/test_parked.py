"""lake parked: files that the ingest agent passes over are listed, and released."""

from __future__ import annotations

from log_lake.agents.ingest.parking import park
from log_lake.lake import Lake
from log_lake.loading.sources import find_files
from tests.support.command import INVALID_INPUT, NOT_FOUND, Command


def parked(lake: Command, *names: str) -> list[str]:
    """Files that are parked, as the agent does it."""
    lake.pool("p")
    pool = Lake.open(lake.uri).pool("p")
    files = [lake.file(name, "bad\n") for name in names]
    for file in find_files(files):
        park(pool, file, why=f"{file.uri}, line 1: not JSON", now=1_800_000_000.0)
    return files


def test_parked_files_are_listed_with_the_reason(lake: Command) -> None:
    a, b = parked(lake, "a.ndjson", "b.ndjson")
    assert lake("parked", "p", "--json").records == [
        {"file": file, "size": 4, "time": "2027-01-15T08:00:00Z", "why": f"{file}, line 1: not JSON"}
        for file in (a, b)
    ]
    assert lake("parked", "p").out.splitlines()[0].split() == ["file", "size", "time", "why"]


def test_where_none_is_parked_that_is_said(lake: Command) -> None:
    lake.pool("p")
    assert lake("parked", "p").err == "p: no file is parked\n"


def test_a_file_is_released_by_its_name_or_with_all_others(lake: Command) -> None:
    a, b, c = parked(lake, "a.ndjson", "b.ndjson", "c.ndjson")
    said = lake("parked", "p", "--release", a).err
    assert said == "p: released 1 file; the ingest agent tries again at its next run\n"
    assert [one["file"] for one in lake("parked", "p", "--json").records] == [b, c]
    assert lake("parked", "p", "--release-all", "--json").records == [{"pool": "p", "released": [b, c]}]
    assert lake("parked", "p", "--json").records == []


def test_a_file_that_is_not_parked_cannot_be_released(lake: Command) -> None:
    (a,) = parked(lake, "a.ndjson")
    assert f"did you mean {a!r}?" in lake.fails(NOT_FOUND, "parked", "p", "--release", a.upper())
    assert "give either" in lake.fails(INVALID_INPUT, "parked", "p", "--release", a, "--release-all")
    assert len(lake("parked", "p", "--json").records) == 1
