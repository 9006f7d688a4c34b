"""The secrets of a run directory: made once, stored there, readable only by their owner.

They stay the same from one start to the next, so a browser stays logged in and a client can keep its token.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

USER = "admin"


@dataclass(frozen=True)
class Credentials:
    """The logins, and the secrets by which the components trust each other."""

    user: str
    password: str
    password_file: Path
    jwt_secret: str
    spark_token: str

    def __repr__(self) -> str:  # never in a log or a traceback
        return f"Credentials(user={self.user!r})"


def load_or_make(folder: Path) -> Credentials:
    """The credentials stored in `folder`; makes those that are missing."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password_file = folder / "passwords.json"
    passwords = json.loads(_kept(password_file, lambda: json.dumps({USER: secrets.token_urlsafe(12)})))
    return Credentials(
        user=USER,
        password=passwords[USER],
        password_file=password_file,
        jwt_secret=_kept(folder / "jwt_secret", lambda: secrets.token_urlsafe(64)),
        spark_token=_kept(folder / "spark_token", lambda: secrets.token_urlsafe(32)),
    )


def _kept(path: Path, make: Callable[[], str]) -> str:
    """The text of the file.  If there is none, it is made, whole or not at all, with mode 0600."""
    try:
        return path.read_text()
    except FileNotFoundError:
        pass
    text = make()
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)
    return text
