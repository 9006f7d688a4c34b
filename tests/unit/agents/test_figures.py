"""Figures of loads, as `$jobs` keeps them: sums over jobs count each record once."""

from __future__ import annotations

from log_lake.agents.ingest.report import IngestResult
from log_lake.agents.reporting import figures_of
from log_lake.agents.work import encoded
from log_lake.lake.results import LoadResult

FIRST = LoadResult(3, "id", records=1000, objects=2, size=50, retyped=1)
AGAIN = LoadResult(3, "id", records=1000, objects=2, size=50, repeated=True)


def test_a_repeated_load_is_recorded_as_one_and_brings_no_records() -> None:
    assert figures_of(vars(FIRST)) == {
        "version": 3, "records": 1000, "objects": 2, "size": 50, "nokey": 0, "rejected": 0, "retyped": 1,
    }  # fmt: skip
    assert figures_of(vars(AGAIN)) == {"version": 3, "repeated": 1}


def test_files_that_a_run_parks_beside_a_repeated_load_are_recorded() -> None:
    again = IngestResult(
        pool="p", token="t", version=3, records=9, size=7, repeated=True, parked=(("a", "b"),), parked_files=1
    )
    assert figures_of(encoded(again)) == {"version": 3, "repeated": 1, "parked_files": 1}
