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
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
VARIABLE = re.compile(r"\$\{(\w+):-(.+)\}")
"""A variable with its default, as the compose file names images."""
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
    (base,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)", DOCKERFILE, re.MULTILINE)
    named = {VARIABLE.sub(r"\2", service["image"]) for service in SERVICE.values()} - {IMAGE} | {base}
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
        assert container["image"] == VARIABLE.sub(r"\2", SERVICE[name]["image"])
        assert container["args"][0] == SERVICE[name]["command"][0]
        assert pod["enableServiceLinks"] is False, (
            "or spark-master would set SPARK_MASTER_PORT for the master"
        )


PODS = [
    manifest["spec"]["template"]["spec"]
    for manifest in MANIFESTS
    if manifest["kind"] in {"Deployment", "StatefulSet", "Job"}
]


def test_every_image_has_a_variable_by_which_a_user_pins_its_digest() -> None:
    named = [service["image"] for service in SERVICE.values() if service["image"] != IMAGE]
    named.append(SERVICE["setup"]["build"]["args"]["PYTHON_IMAGE"])
    variables = {match[1] for image in named if (match := VARIABLE.fullmatch(image))}
    assert variables == {"POSTGRES_IMAGE", "REDIS_IMAGE", "CEPH_IMAGE", "PYTHON_IMAGE"}
    assert len(named) == len(variables)
    assert "FROM ${PYTHON_IMAGE}" in DOCKERFILE
    page = (ROOT / "docs/deploy.md").read_text()
    assert all(f"`{variable}`" in page for variable in variables)


def test_what_the_image_installs_has_a_hash_that_is_written_down() -> None:
    installs = re.findall(r"uv pip install ([^\\\n]*)", DOCKERFILE)
    from_index = [words for words in installs if not words.endswith("--no-deps --compile-bytecode . ")]
    assert len(from_index) == 2
    assert all("--require-hashes" in words for words in from_index)
    assert "--no-hashes" not in DOCKERFILE
    packages = re.split(r"\n(?=\w)", (ROOT / "deploy/requirements-celery.txt").read_text())[1:]
    assert {package.partition("==")[0] for package in packages} >= {"celery", "kombu", "redis"}
    assert all("--hash=sha256:" in package for package in packages)


@pytest.mark.parametrize("pod", PODS, ids=lambda pod: pod["containers"][0]["name"])
def test_a_pod_has_no_more_rights_than_it_needs(pod: dict[str, Any]) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted == ({"/data"} if container["name"] == "redis" else {"/opt/lake/home", "/tmp"})


def test_what_a_pod_writes_is_in_the_folders_that_are_mounted() -> None:
    (config,) = [manifest["data"] for manifest in MANIFESTS if manifest["kind"] == "ConfigMap"]
    written = (
        "HOME",
        "AIRFLOW_HOME",
        "SPARK_WORKER_DIR",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE",
    )
    assert all(config[name].startswith("/opt/lake/home") for name in written)
    assert config["AIRFLOW__CORE__DAGS_FOLDER"] == "/opt/lake/dags"


def test_no_service_of_the_compose_file_gains_rights() -> None:
    for name, service in SERVICE.items():
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service.get("cap_drop") == (None if name == "store" else ["ALL"]), name
        assert ("cap_add" in service) is (name in {"postgres", "redis"}), name
    assert SERVICE["redis"]["read_only"] is True
