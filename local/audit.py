"""Lists known vulnerabilities of the packages in requirements.txt, by pip-audit and OSV's service.

    python -m local.audit

pip-audit runs in its own environment, which uv makes.  If the service cannot be reached, one line says that
nothing was audited, and the status is 0, so that a machine without the internet can run all of CI.  Otherwise
the status is that of pip-audit: 1 if a package has a known vulnerability.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVICE = ("api.osv.dev", 443)
SECONDS = 5.0
"""How long to wait for a connection to the service."""
COMMAND = (
    *(str(Path(sys.executable).with_name("uv")), "tool", "run", "--quiet", "pip-audit==2.9.0"),
    *("--vulnerability-service", "osv", "--disable-pip", "--require-hashes", "--requirement"),
    str(ROOT / "requirements.txt"),
)


def run(command: Sequence[str]) -> int:
    """Runs a command, shows its output, and returns its status."""
    return subprocess.run(command, check=False).returncode


def audit(
    service: tuple[str, int] = SERVICE,
    *,
    seconds: float = SECONDS,
    run: Callable[[Sequence[str]], int] = run,
    say: Callable[[str], object] = print,
) -> int:
    """Returns pip-audit's status; if the service cannot be reached, it says so and returns 0."""
    try:
        socket.create_connection(service, timeout=seconds).close()
    except OSError as error:
        say(f"audit: not run, since {service[0]} cannot be reached ({error.strerror or error})")
        return 0
    return run(COMMAND)


if __name__ == "__main__":
    sys.exit(audit())
