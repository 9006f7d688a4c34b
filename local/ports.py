"""Which ports the services listen on: the usual one, or the next free one.

A port is free if no process listens on it on either loopback address.  Both count, because Spark's clients
connect to `localhost`, which may mean ::1 first.  Between this choice and the service's own bind another program
may take the port; the service then fails to start and says so.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection

from local.errors import LocalError

LOOPBACK = "127.0.0.1"
REACH = 50
"""How many ports are tried, beginning with the usual one."""


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback addresses."""
    addresses = [(socket.AF_INET, LOOPBACK), (socket.AF_INET6, "::1")]
    for family, address in addresses:
        try:
            probe = socket.socket(family, socket.SOCK_STREAM)
        except OSError:  # a machine without IPv6
            continue
        with probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                if family == socket.AF_INET or is_answered(port, address):
                    return False
    return True


def is_answered(port: int, address: str = LOOPBACK) -> bool:
    """Whether a process accepts connections there."""
    try:
        with socket.create_connection((address, port), timeout=1.0):
            return True
    except OSError:
        return False


def choose(
    usual: int, *, what: str, taken: Collection[int] = (), free: Callable[[int], bool] = is_free
) -> int:
    """The usual port, or the first free one after it that is not in `taken`."""
    for port in range(usual, min(usual + REACH, 65536)):
        if port not in taken and free(port):
            return port
    raise LocalError(
        f"{what}: no free port from {usual} to {usual + REACH - 1} on {LOOPBACK}; "
        "stop what listens there (`ss -ltnp` shows it)"
    )
