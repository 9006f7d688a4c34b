"""docker-compose.yaml as it runs: agents alone take a load through ingest, compaction, delete and retention."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.containers.conftest import make_pool
from tests.support.containers.stack import SERVICES, Stack, container
from tests.support.repository import ROOT

pytestmark = [pytest.mark.containers, pytest.mark.timeout(2400)]


def test_every_service_is_well_by_its_own_health_check(running: Stack) -> None:
    assert {service: running.healthy(service) for service in SERVICES} == dict.fromkeys(SERVICES, True)
    assert running.api.import_errors() == {}


def test_nothing_but_airflows_port_is_reached_from_outside_and_this_on_loopback(running: Stack) -> None:
    ports = {}
    for service in SERVICES:
        bindings = json.loads(
            running.podman("inspect", "--format", "{{json .HostConfig.PortBindings}}", container(service))
        )
        ports[service] = [address["HostIp"] for bound in (bindings or {}).values() for address in bound]
    assert ports == {**{service: [] for service in SERVICES}, "api-server": ["127.0.0.1"]}


def test_without_secrets_nothing_starts(running: Stack) -> None:
    """No secret has a default: the command says what to do instead."""
    words = [
        running.compose[0],
        "--env-file",
        "/dev/null",
        "--file",
        str(ROOT / "docker-compose.yaml"),
        "config",
    ]
    environ = {name: value for name, value in running.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "run sh deploy/secrets.sh >.env" in done.stdout + done.stderr


def test_a_load_goes_through_ingest_compaction_delete_and_retention(running: Stack) -> None:
    pool = make_pool(
        running,
        "logs",
        ingest__batch_files="2",
        compact__depth="2",
        tombstones__apply="0s",
        vacuum__grace="0s",
        history__keep="0s",
    )
    for i in range(8):
        pool.land(
            f"{i}.ndjson", [{"k": k, "level": "debug" if k % 4 == 0 else "info"} for k in range(i, 800, 8)]
        )

    pool.run("ingest")
    assert pool.keys == list(range(800))
    assert (pool.depth, pool.versions) == (4, 4)
    assert pool.run("ingest")["batches"] == 0, "each file is ingested once"

    pool.run("compact")
    assert (pool.depth, pool.keys) == (1, list(range(800)))

    running.lake("delete", "logs", "--where", "level = 'debug'")
    left = [k for k in range(800) if k % 4]
    assert pool.keys == left
    pool.run("tombstones")
    assert (pool.stored_records, pool.keys) == (600, left), "the records are out of the objects"

    before = pool.data
    running.lake("set", "logs", "expire.records=1")
    pool.land("late.ndjson", [{"k": 1000, "level": "info"}])
    pool.run("ingest", wait=False)
    pool.run("retention")
    assert pool.keys == [1000]
    assert len(pool.data) == 1, "what expired is off the store"
    assert not before & pool.data

    jobs = [json.loads(line) for line in running.lake("jobs", "logs", "--json").splitlines()]
    assert {job["state"] for job in jobs} == {"done"}
    assert {job["agent"] for job in jobs} == {"ingest", "compact", "tombstones", "retention"}
