"""Names of lakes as pages and addresses show them, without what may be a secret; pure."""

from __future__ import annotations

import hashlib
import re


def is_uri(name: str) -> bool:
    """Whether the name is a URI or a path; otherwise it is the id of a connection."""
    return "/" in name or ":" in name


def without_user(address: str) -> str:
    """Returns the address of a lake as it may be shown: without a user, a password and what follows a question
    mark."""
    return re.sub(r"[?#].*", "?***", re.sub(r"://[^/]*@", "://***@", address), count=1)


def key_of(name: str) -> str:
    """Returns the name of a lake in addresses of the view: the id of its connection, or a name made from its
    address.

    Servers log addresses of pages, and people send them on; an address of a lake may hold a secret.
    """
    if not is_uri(name):
        return name
    shown = without_user(name).rstrip("/")
    return f"lake-{hashlib.sha256(shown.encode()).hexdigest()[:12]}"
