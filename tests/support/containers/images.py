"""Stand-ins for the official images of docker-compose.yaml, for machines that can pull none.

An image that this machine has is used as it is.  For any other, an image of Debian's packages is made, under the
official image's name, with an entrypoint that does what the official one does of it; `stand_ins` holds how.  So
the versions differ: what a test proves, it proves of Debian's Ceph 16, PostgreSQL 15, Redis 7.0, and Python 3.11.
All stand-ins have the label `log-lake.stand-in`.
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
"""In a container of its own, a machine may raise no limits, and crun refuses its cgroups."""


def podman_environ(folder: Path) -> dict[str, str]:
    """The environment in which podman works on a machine like CI's; installs podman if it is missing, or skips."""
    programs(_PROGRAMS, packages=PACKAGES, where="/usr/sbin")
    conf = folder / "containers.conf"
    conf.write_text(_CONF)
    return {**os.environ, "CONTAINERS_CONF": str(conf)}


def said_by(words: Sequence[str], environ: Mapping[str, str], *, seconds: float = BUILD_SECONDS) -> str:
    """What a command prints; raises RuntimeError with the end of its complaint if it fails."""
    done = subprocess.run(
        words, env=dict(environ), capture_output=True, text=True, timeout=seconds, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.returncode}: {(done.stderr or done.stdout)[-_TAIL:]}")
    return done.stdout


def has_image(name: str, environ: Mapping[str, str]) -> bool:
    return subprocess.run(["podman", "image", "exists", name], env=dict(environ), check=False).returncode == 0


def make_stand_ins(folder: Path, environ: Mapping[str, str]) -> list[str]:
    """Makes the images that this machine lacks; the names of those of docker-compose.yaml that are stand-ins."""
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
    """Skips the test if this machine can run no container, as where the kernel allows no namespaces."""
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
