"""Airflow's own settings of OpenTelemetry carry the spans and metrics of the lake; nothing is sent without them."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.repository import ROOT

pytestmark = pytest.mark.airflow

WORK = """
import pyarrow as pa
from airflow import settings
settings.initialize()
from airflow.observability.stats import Stats
Stats.incr("begins")  # as in each process of Airflow, this sets up its metrics
from log_lake.lake import Lake
Lake.create("memory://x").create_pool("logs", key="k").branch().append(pa.table({"k": [1]}))
from opentelemetry import metrics, trace
for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
    getattr(provider, "force_flush", lambda: None)()
"""


@contextmanager
def collector() -> Iterator[tuple[str, dict[str, bytes]]]:
    """The address of a collector on loopback, and what it got by path."""
    got: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got[self.path] = got.get(self.path, b"") + body
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", got
        finally:
            server.shutdown()


def in_airflow(home: Path, address: str, *, on: bool) -> None:
    environ = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__TRACES__OTEL_ON": str(on),
        "AIRFLOW__METRICS__OTEL_ON": str(on),
        "OTEL_TRACES_EXPORTER": "otlp_proto_http",
        "OTEL_EXPORTER_OTLP_ENDPOINT": address,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", WORK], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_airflows_exporters_send_spans_and_metrics_of_the_lake(tmp_path: Path) -> None:
    with collector() as (address, got):
        in_airflow(tmp_path, address, on=True)
    assert got.keys() == {"/v1/traces", "/v1/metrics"}
    for name in (b"log_lake.load", b"log_lake.commit", b"log_lake.pool"):
        assert name in got["/v1/traces"]
    for name in (b"log_lake.store.requests", b"log_lake.commits", b"log_lake.phase.seconds"):
        assert name in got["/v1/metrics"]


def test_without_these_settings_nothing_is_sent(tmp_path: Path) -> None:
    with collector() as (address, got):
        in_airflow(tmp_path, address, on=False)
    assert got == {}
