"""Makes substitutes for the official images of docker-compose.yaml, on machines that can pull none.

An image that this machine has is used as it is. For any other, an image is made of Debian's packages, with the
official image's name. Its entrypoint does those things of the official one that docker-compose.yaml needs; the
folder `stand_ins` has them. The versions differ: a test proves something about Debian's Ceph 16, PostgreSQL 15,
Redis 7.0 and Python 3.11. All substitutes have the label `log-lake.stand-in`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.servers.daemons import programs

PACKAGES = ("podman", "runc", "netavark", "aardvark-dns", "iptables", "debootstrap")
_PROGRAMS = ("podman", "runc", "debootstrap")
BASE = "docker.io/library/debian:bookworm-slim"
STAND_INS: Mapping[str, str] = {
    "docker.io/library/python:3.11.14-slim-bookworm": "python",
    "docker.io/library/postgres:17.7-bookworm": "postgres",
    "docker.io/library/redis:7.2.11-bookworm": "redis",
    "quay.io/ceph/ceph:v19.2.3": "ceph",
}
BUILD_SECONDS = 900.0
_TAIL = 3000

_CONF = """\
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=8192:8192"]
[engine]
runtime = "runc"
"""
"""The configuration of podman for a machine that is itself a container: it may raise no limits, and crun may not
use its cgroups."""


def podman_environ(folder: Path) -> dict[str, str]:
    """Returns the environment in which podman works on a machine like CI's. Installs podman if it is missing;
    skips if that fails."""
    programs(_PROGRAMS, packages=PACKAGES, where="/usr/sbin")
    conf = folder / "containers.conf"
    conf.write_text(_CONF)
    return {**os.environ, "CONTAINERS_CONF": str(conf)}


def said_by(words: Sequence[str], environ: Mapping[str, str], *, seconds: float = BUILD_SECONDS) -> str:
    """Returns what a command prints. Raises RuntimeError with the end of its error output if it fails."""
    done = subprocess.run(
        words, env=dict(environ), capture_output=True, text=True, timeout=seconds, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.returncode}: {(done.stderr or done.stdout)[-_TAIL:]}")
    return done.stdout


def has_image(name: str, environ: Mapping[str, str]) -> bool:
    return subprocess.run(["podman", "image", "exists", name], env=dict(environ), check=False).returncode == 0


def make_stand_ins(folder: Path, environ: Mapping[str, str]) -> list[str]:
    """Makes the images that this machine lacks. Returns the names of the images of docker-compose.yaml that are
    substitutes."""
    missing = [name for name in STAND_INS if not has_image(name, environ)]
    if missing and not has_image(BASE, environ):
        _make_base(folder, environ)
        _check_runs(environ)
    context = folder / "stand_ins"
    shutil.copytree(Path(__file__).with_name("stand_ins"), context)
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", context / "certificates.pem")
    for name in missing:
        file = str(context / f"{STAND_INS[name]}.containerfile")
        said_by(["podman", "build", "--quiet", "--tag", name, "--file", file, str(context)], environ)
    label = [
        "podman",
        "images",
        "--filter",
        "label=log-lake.stand-in",
        "--format",
        "{{.Repository}}:{{.Tag}}",
    ]
    return sorted(set(said_by(label, environ).split()) & set(STAND_INS))


def _check_runs(environ: Mapping[str, str]) -> None:
    """Skips the test if this machine cannot run a container, for example because the kernel does not allow
    namespaces."""
    try:
        said_by(["podman", "run", "--rm", "--network=none", BASE, "true"], environ)
    except RuntimeError as error:
        pytest.skip(f"no container runs here: {error}")


def _make_base(folder: Path, environ: Mapping[str, str]) -> None:
    root, archive = folder / "debian", folder / "debian.tar"
    said_by(["debootstrap", "--variant=minbase", "bookworm", str(root)], environ)
    said_by(["tar", "-C", str(root), "-cf", str(archive), "."], environ)
    said_by(["podman", "import", str(archive), BASE], environ)
    shutil.rmtree(root)
    archive.unlink()
