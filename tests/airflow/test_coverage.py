"""The coverage sensor and the callback of a deadline, as a worker and the triggerer run them."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_key
from log_lake.coverage.key_ranges import interval_range
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from tests.support.repository import ROOT

pytestmark = pytest.mark.airflow

ASKED = """
import asyncio, datetime, json, sys
from types import SimpleNamespace
from airflow.sdk.exceptions import AirflowRescheduleException
from airflow_lake.deadlines import warn_of_gaps
from airflow_lake.sensors.coverage import LakeCoverageSensor
task = SimpleNamespace(
    dag_id="d", run_id="r", task_id="a", map_index=-1, try_number=1, max_tries=0,
    get_first_reschedule_date=lambda c: None,
)
end = datetime.datetime(2026, 1, 3, tzinfo=datetime.timezone.utc)
context, answer = {"params": {}, "ti": task, "data_interval_end": end}, []
for number, how in enumerate(json.loads(sys.argv[2])):
    try:
        if "pool" in how:
            run = {"dag_run": {"dag_id": "report", "run_id": "r1"}}
            answer.append(asyncio.run(warn_of_gaps(run, lake=sys.argv[1], **how)))
            continue
        one = LakeCoverageSensor(task_id=f"t{number}", lake=sys.argv[1], **{"pool_name": "days", **how})
        one.render_template_fields(context)
        answer.append(one.execute(context))
    except AirflowRescheduleException:
        answer.append("waits")
    except Exception as error:
        answer.append(f"{type(error).__name__}: {error}")
sys.stderr.write("ANSWER" + json.dumps(answer))
"""


def cover(pool: Pool, first: str, last: str) -> None:
    span = KeyRange(encode_key([first], pool.config.key), encode_key([last], pool.config.key))
    pool.branch().replace([], key_range=span)


def asked(folder: Path, *ways: dict[str, Any]) -> list[Any]:
    """What became of sensors, and of callbacks, on a pool that holds the days 1 to 3 and 5 of January 2026."""
    lake = Lake.create(str(folder / "lake"))
    pool = lake.create_pool(
        "days", key="day", settings={"type.day": "string", "intervals.since": "2026-01-01"}
    )
    for first, last in ((1, 2), (2, 4), (5, 6)):
        cover(pool, f"2026-01-{first:02}", f"2026-01-{last:02}")
    lake.create_pool("numbers", key="k", settings={"type.k": "int64"})
    hours = lake.create_pool("hours", key="at", settings={"type.at": "timestamp", "intervals.every": "hour"})
    old = dt.datetime(1950, 1, 1, tzinfo=dt.UTC)
    hours.branch().replace(
        [],
        key_range=interval_range(
            old, old.replace(year=1951), key=hours.config.key, key_class="timestamp with zone"
        ),
    )
    lake.create_pool("empty", key="day", settings={"type.day": "timestamp"})
    done = subprocess.run(
        [sys.executable, "-c", ASKED, str(folder / "lake"), json.dumps(ways)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    answers: list[Any] = json.loads(done.stderr.rpartition("ANSWER")[2])
    return answers


def test_the_sensor_waits_until_all_intervals_are_held(tmp_path: Path) -> None:
    whole, gap, later, nothing, early, wrong, gone, no_times, cut, warned = asked(
        tmp_path,
        {"until": "{{ data_interval_end }}"},
        {"until": "2026-01-06"},
        {"until": "2026-01-06T00:00:00Z", "since": "2026-01-05"},
        {"until": "2026-01-06", "pool_name": "empty"},
        {"until": "2026-01-01"},
        {"until": "yesterday"},
        {"until": "2026-01-06", "pool_name": "nope"},
        {"until": "2026-01-06", "pool_name": "numbers"},
        {"until": "2026-01-06", "pool_name": "hours"},
        {"pool": "days"},
    )
    assert whole == {"pool": "days", "until": "2026-01-03T00:00:00+00:00", "intervals": 2, "version": 3}
    assert (gap, nothing) == ("waits", "waits")
    assert later["intervals"] == 1
    assert early.startswith(
        "InvalidInput: t4: no interval of 'days' ends by until=2026-01-01: name a later time"
    )
    assert wrong == "InvalidInput: t5: until='yesterday': must be a time of ISO 8601, as 2026-01-31T00:00:00Z"
    assert gone.startswith("NotFound: pool 'nope' does not exist")
    assert no_times.startswith("InvalidInput: numbers: its key 'k' is no time, so gaps cannot be told")
    assert cut.startswith("InvalidInput: t8: pool 'hours' has too many intervals to tell: those before 2014-")
    assert warned.startswith("a deadline has passed of report/r1; days lacks ")
    assert "the first: 2026-01-04T00:00:00+00:00, 2026-01-06T00:00:00+00:00" in warned
