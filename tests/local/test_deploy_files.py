"""The files of deploy/ and docker-compose.yaml agree with each other; no container is started."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
import yaml

from tests.support.containers.images import STAND_INS
from tests.support.containers.stack import SERVICES
from tests.support.repository import ROOT

COMPOSE = (ROOT / "docker-compose.yaml").read_text()
SERVICE: dict[str, Any] = yaml.safe_load(COMPOSE)["services"]
IMAGE = "log-lake:0.1.0"
MANIFESTS = [
    manifest
    for file in sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
    for manifest in yaml.safe_load_all(file.read_text())
]


def secrets() -> dict[str, str]:
    said = subprocess.run(
        ["sh", "deploy/secrets.sh"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return dict(line.split("=", 1) for line in said.splitlines())


def test_each_secret_that_is_demanded_is_made_and_none_has_a_default() -> None:
    demanded = set(re.findall(r"\$\{(\w+):\?", COMPOSE))
    assert demanded == set(secrets())
    assert not demanded & set(re.findall(r"\$\{(\w+):-", COMPOSE))


def test_secrets_are_new_each_time_and_may_stand_in_a_url() -> None:
    one, other = secrets(), secrets()
    assert not set(one.values()) & set(other.values())
    assert all(
        re.fullmatch(r"[\w-]{16,}", value) for name, value in one.items() if name != "AIRFLOW_FERNET_KEY"
    )


def test_every_image_is_pinned_and_has_a_stand_in() -> None:
    """`python` is what deploy/Dockerfile begins with."""
    (base,) = re.findall(r"^FROM (\S+)", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE)
    named = {service["image"] for service in SERVICE.values()} - {IMAGE} | {base}
    assert {name.removeprefix("docker.io/library/") for name in STAND_INS} == named
    patch = r":v?\d+\.\d+\.\d+\b|/?postgres:\d+\.\d+\b"  # PostgreSQL's releases have two numbers
    assert [name for name in named if not re.search(patch, name)] == []


def test_every_service_but_the_one_that_ends_is_watched_and_started_again() -> None:
    lasting = {name: service for name, service in SERVICE.items() if name != "setup"}
    assert set(lasting) == set(SERVICES)
    assert {service["restart"] for service in lasting.values()} == {"unless-stopped"}
    assert all(service["healthcheck"]["test"] for service in lasting.values())


@pytest.mark.parametrize("name", ["LAKE_SPARK_REMOTE", "AIRFLOW__CORE__EXECUTOR"])
def test_the_manifests_of_kubernetes_set_what_the_compose_file_sets(name: str) -> None:
    (config,) = [manifest["data"] for manifest in MANIFESTS if manifest["kind"] == "ConfigMap"]
    assert config[name] == SERVICE["worker"]["environment"][name]


def test_the_manifests_start_the_services_of_the_compose_file_with_their_image() -> None:
    pods = {
        manifest["metadata"]["name"]: manifest["spec"]["template"]["spec"]
        for manifest in MANIFESTS
        if manifest["kind"] in {"Deployment", "StatefulSet", "Job"}
    }
    assert set(pods) == set(SERVICE) - {"postgres", "store"}
    for name, pod in pods.items():
        (container,) = pod["containers"]
        assert container["image"] == SERVICE[name]["image"]
        assert container["args"][0] == SERVICE[name]["command"][0]
        assert pod["enableServiceLinks"] is False, (
            "or spark-master would set SPARK_MASTER_PORT for the master"
        )
