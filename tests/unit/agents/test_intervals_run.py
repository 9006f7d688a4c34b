"""The intervals agent before and after Spark: which files belong to an interval, and the report."""

from __future__ import annotations

import datetime as dt
import logging
from pathlib import Path
from typing import Any

import pytest

from lake_core.errors import InvalidInput, LakeError, NotFound
from log_lake.lake import Lake
from tests.support.agents import finder, runner

find = finder("intervals")
run = runner("intervals")

BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
END = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


@pytest.fixture
def params(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    """A run on a lake with a pool whose files of 2026-01-01 are there."""
    caplog.set_level(logging.INFO, "log_lake.agents")
    lake = Lake.create(str(tmp_path / "lake"), author="test")
    place = tmp_path / "%Y-%m-%d.ndjson"
    lake.create_pool("p", key="t", settings={"intervals.source": str(place)})
    lake.create_pool("without", key="t")
    (tmp_path / "2026-01-01.ndjson").write_text('{"t": 1767225600}\n')
    return {"lake": lake.store.uri}


def test_the_files_of_an_interval_replace_it(
    params: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    (work,) = find(params, begin=BEGIN, end=END, run="scheduled")
    assert (work["pool"], work["begin"], work["end"]) == ("p", BEGIN.isoformat(), END.isoformat())
    assert [Path(file["uri"]).name for file in work["files"]] == ["2026-01-01.ndjson"]
    assert work["token"] == "", "an interval may be loaded again"
    assert caplog.messages == [
        "p: replace 2026-01-01T00:00:00+00:00 to 2026-01-02T00:00:00+00:00 by 1 file, 18 B"
    ]


def test_an_interval_without_files_is_handed_out_too_if_the_pool_says_that_it_is_empty(
    params: dict[str, Any],
) -> None:
    """It may have held records, which the run removes."""
    Lake.open(params["lake"]).configure_pool("p", {"intervals.missing": "empty"})
    (work,) = find(params, begin=END, end=END + (END - BEGIN), run="scheduled")
    assert work["files"] == []


def test_an_interval_without_files_fails_otherwise_and_removes_nothing(
    params: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """The folder may be late, or misspelt."""
    (work,) = find(params, begin=END, end=END + (END - BEGIN), run="scheduled")
    assert work["files"] is None
    assert "p: no file for the interval that begins 2026-01-02T00:00:00+00:00: " in caplog.text
    with pytest.raises(NotFound, match=r"lake set POOL intervals\.missing=empty"):
        run(work, open_spark=spark_is_not_opened)


def test_a_file_without_a_byte_says_that_the_interval_is_empty(
    params: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "2026-01-02.ndjson").write_text("")
    (work,) = find(params, begin=END, end=END + (END - BEGIN), run="scheduled")
    assert work["files"] == []


def test_the_days_of_a_zone_east_of_utc_have_their_own_files(params: dict[str, Any]) -> None:
    tokyo = dt.timezone(dt.timedelta(hours=9))
    day = dt.datetime(2026, 1, 1, tzinfo=tokyo)
    (work,) = find(params, begin=day, end=day + dt.timedelta(days=1), run="scheduled")
    assert [Path(file["uri"]).name for file in work["files"]] == ["2026-01-01.ndjson"]
    assert work["begin"] == "2026-01-01T00:00:00+09:00"


def test_a_dry_run_hands_out_nothing(params: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    assert find(params | {"dry_run": True}, begin=BEGIN, end=END, run="scheduled") == []
    assert caplog.messages[-1] == "dry run: nothing is loaded"


def test_a_run_by_hand_appends_the_files_that_it_names(
    params: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = str(tmp_path / "2026-01-01.ndjson")
    (work,) = find(params | {"files": [file]}, begin=None, end=None, run="by-hand")
    assert (work["begin"], work["token"], work["title"]) == ("", "interval:by-hand:p", "p: 1 file")
    assert caplog.messages == ["p: append 1 file, 18 B, as the run asks"]
    with pytest.raises(InvalidInput, match="set the parameters `pools`"):
        find(params, begin=None, end=None, run="by-hand")


def test_a_pool_that_is_named_must_have_a_source(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"lake set without intervals\.source=PATTERN"):
        find(params | {"pools": ["without"]}, begin=BEGIN, end=END, run="scheduled")


def test_a_run_of_an_interval_takes_no_files(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="leave `files` out, or start a run by hand"):
        find(params | {"files": ["/late.ndjson"]}, begin=BEGIN, end=END, run="scheduled")


def test_a_pool_whose_files_cannot_be_listed_is_handed_out_and_holds_back_no_other(
    params: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake.open(params["lake"])
    lake.create_pool("other", key="t", settings={"intervals.source": "s3a://%Y-%m-%d/no-credentials"})
    handed = {work["pool"]: work["files"] for work in find(params, begin=BEGIN, end=END, run="scheduled")}
    assert handed["other"] is None
    assert len(handed["p"]) == 1
    (work,) = [w for w in find(params, begin=BEGIN, end=END, run="scheduled") if w["pool"] == "other"]
    with pytest.raises(LakeError):
        run(work, open_spark=spark_is_not_opened)


def spark_is_not_opened(*_: object, **__: object) -> Any:
    raise AssertionError("the files cannot be listed")
