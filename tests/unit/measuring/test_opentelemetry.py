"""OpenTelemetry gets spans and metrics if the process has set it up, and costs nothing otherwise.

A provider is set once for a process, so each of these tests is a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.support.repository import ROOT

WORK = """
import pyarrow as pa
from log_lake.lake import Lake
from log_lake.agents.agent import here
from log_lake.agents.driver import carry_out, find

lake = Lake.create("memory://traced")
branch = lake.create_pool("logs", key="k").branch()
for number in range(10):
    branch.append(pa.table({"k": [number, 100]}))
view = lake.pool("logs").at()
list(view.scan())
next(view.scan(jobs=2))  # a scan that is not read to its end
handed = find("compact", {"lake": "memory://traced"})
carry_out("compact", handed.work, open_lake=Lake.open, open_workers=here)
try:
    branch.load(["/nowhere/with a secret.csv"])
except Exception as error:
    failure = type(error).__name__
"""

PLAIN = f"""
import sys
{WORK}
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""

SENT = f"""
import json
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
{WORK}
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))  # later than the first work
ids = {{one.context.span_id: one.name for one in spans.get_finished_spans()}}
print(json.dumps({{
    "failure": failure,
    "spans": [
        [one.name, ids.get(one.parent.span_id) if one.parent else None, dict(one.attributes),
         one.status.status_code.name, [event.name for event in one.events]]
        for one in spans.get_finished_spans()
    ],
    "metrics": {{
        metric.name: [[dict(point.attributes), point.value] for point in metric.data.data_points]
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }},
    "totals": lake.store.meter.counts().numbers,
}}))
"""


def in_a_process(script: str) -> str:
    environ = {name: text for name, text in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sent() -> Any:
    pytest.importorskip("opentelemetry.sdk")
    return json.loads(in_a_process(SENT))


def test_a_process_without_it_does_not_import_it() -> None:
    assert in_a_process(PLAIN) == ""


def test_loads_commits_scans_and_agents_are_spans(sent: Any) -> None:
    names = [name for name, *_ in sent["spans"]]
    assert names.count("log_lake.load") == 10 + 2 + 1  # those of the jobs, and the one that failed
    assert names.count("log_lake.scan") == 2
    assert names.count("log_lake.agent") == names.count("log_lake.rewriting") == 1
    below = {(name, parent) for name, parent, *_ in sent["spans"]}
    assert below == {
        ("log_lake.load", None),
        ("log_lake.commit", "log_lake.load"),
        ("log_lake.scan", None),
        ("log_lake.agent", None),
        ("log_lake.rewriting", "log_lake.agent"),
        ("log_lake.commit", "log_lake.rewriting"),
    }


def test_spans_say_where_and_of_an_error_only_its_class(sent: Any) -> None:
    failed = [one for one in sent["spans"] if one[3] == "ERROR"]
    assert failed == [
        [
            "log_lake.load",
            None,
            {"log_lake.pool": "logs", "log_lake.branch": "main", "error.type": sent["failure"]},
            "ERROR",
            [],
        ]
    ]
    assert "secret" not in json.dumps(sent["spans"])
    commits = [about["log_lake.version"] for name, _, about, *_ in sent["spans"] if name == "log_lake.commit"]
    assert max(commits) == 11


def test_metrics_are_the_totals_of_the_process(sent: Any) -> None:
    assert set(sent["metrics"]) == {
        "log_lake.store.requests",
        "log_lake.store.bytes",
        "log_lake.commits",
        "log_lake.races_lost",
        "log_lake.phase.seconds",
    }
    kinds = {labels["kind"] for labels, _ in sent["metrics"]["log_lake.store.requests"]}
    assert kinds == {"read", "list", "write", "delete"}
    requests = sum(number for _, number in sent["metrics"]["log_lake.store.requests"])
    assert requests >= sum(sent["totals"][:4])
    ((_, commits),) = sent["metrics"]["log_lake.commits"]
    assert commits == 10 + 1 + 2
    phases = {(labels["work"], labels["phase"]) for labels, _ in sent["metrics"]["log_lake.phase.seconds"]}
    assert {("load", "commit"), ("scan", "read"), ("rewriting", "write")} <= phases
