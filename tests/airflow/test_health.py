"""The operator and the sensor that ask the doctor, as a worker runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from log_lake.lake import Lake
from tests.support.repository import ROOT

pytestmark = pytest.mark.airflow

ASKED = """
import json, sys
from types import SimpleNamespace
from airflow.sdk.exceptions import AirflowRescheduleException
from airflow_lake.operators.doctor import LakeDoctorOperator
from airflow_lake.sensors.health import LakeHealthSensor
task = SimpleNamespace(
    dag_id="d", run_id="r", task_id="a", map_index=-1, try_number=1, max_tries=0,
    get_first_reschedule_date=lambda c: None,
)
context, answer = {"params": {}, "ti": task}, []
for number, (kind, how) in enumerate(json.loads(sys.argv[2])):
    try:
        kinds = {"doctor": LakeDoctorOperator, "wait": LakeHealthSensor}
        one = kinds[kind](task_id=f"t{number}", lake=sys.argv[1], **how)
        one.render_template_fields(context)
        answer.append(one.execute(context))
    except AirflowRescheduleException:
        answer.append("waits")
    except Exception as error:
        answer.append(f"{type(error).__name__}: {error}")
sys.stderr.write("ANSWER" + json.dumps(answer))
"""


def asked(folder: Path, *tasks: tuple[str, dict[str, Any]]) -> list[Any]:
    """What became of these tasks on a lake with a pool that is well and one whose settings fight."""
    lake = Lake.create(str(folder / "lake"))
    lake.create_pool("well", key="k")
    lake.create_pool("fights", key="k", settings={"compact.max_bytes": "10MiB"})
    done = subprocess.run(
        [sys.executable, "-c", ASKED, str(folder / "lake"), json.dumps(tasks)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    answers: list[Any] = json.loads(done.stderr.rpartition("ANSWER")[2])
    return answers


def test_the_operator_fails_and_the_sensor_waits_by_the_verdict(tmp_path: Path) -> None:
    passes, fails, never, unknown, dev, gone, waits, enough, one = asked(
        tmp_path,
        ("doctor", {}),
        ("doctor", {"fail_on": "attention"}),
        ("doctor", {"fail_on": "never", "pools": ["well"]}),
        ("doctor", {"fail_on": "ever"}),
        ("doctor", {"branch": "dev"}),
        ("doctor", {"pools": ["nope"]}),
        ("wait", {}),
        ("wait", {"until": "attention"}),
        ("wait", {"pools": ["well"]}),
    )
    assert (passes["verdict"], passes["well"], passes["attention"], passes["ill"]) == ("attention", 1, 1, 0)
    (finding,) = passes["findings"]
    assert (finding["pool"], finding["kind"], finding["command"]) == ("fights", "fight", "lake show fights")
    assert fails.startswith("Incomplete: attention: 2 pools; not well: fights; the worst: compact.max_bytes")
    assert (never["verdict"], one["verdict"], enough["verdict"]) == ("well", "well", "attention")
    assert unknown == "ValueError: t3: fail_on='ever': use attention or ill or never"
    assert dev.startswith("ValueError: t4: branch has no meaning here")
    assert gone == "NotFound: pool 'nope' does not exist; there are: fights, well"
    assert waits == "waits"
