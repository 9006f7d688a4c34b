"""Who asks the server, what each role may do, and the file that lists the callers.

| role | may |
|---|---|
| catalog | ask the catalog, which tells names, fields, statistics, and where the objects are |
| reader | also ask queries, which the server reads with its own rights |
| writer | also load, and run statements that change records |
| keeper | also create and drop pools |

A file has either a single token, which has the role catalog, or one line per caller: `NAME ROLE TOKEN`.  A line
that begins with `#` is a comment.
"""

from __future__ import annotations

import enum
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lake_core.errors import InvalidInput

MIN_TOKEN, MAX_TOKEN = 16, 4_096
"""Characters of a token: fewer can be guessed; more are no token but another file."""
MAX_FILE = 1 << 20
"""The most bytes of the file of callers; each request compares its token with all tokens in it."""
MAX_NAME = 64
_TOKEN = re.compile(r"[\x21-\x7e]+")
_NAME = re.compile(r"[A-Za-z0-9_.@-]+")


class CallerRole(enum.IntEnum):
    """What a caller may do; each role may also do all that the lower roles may."""

    CATALOG = 0
    READER = 1
    WRITER = 2
    KEEPER = 3


@dataclass(frozen=True)
class Caller:
    """The caller of the server.  Logs and transactions have its name, but never its token."""

    name: str
    role: CallerRole
    token: bytes = field(default=b"", repr=False)


ANYBODY = Caller("", CallerRole.CATALOG)
"""A process of this machine, if the server has no tokens."""


def callers_in(path: str) -> tuple[Caller, ...]:
    """Returns the callers that a file names.  Raises InvalidInput; its message has no token."""
    if not path:  # as from a variable that is not set
        raise InvalidInput("--token-file is empty; name a file with a token, or leave the option out")
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise InvalidInput(
            f"--token-file {path}: {error.strerror or error}; name a file with a token"
        ) from error
    if len(data) > MAX_FILE:
        raise InvalidInput(f"--token-file {path}: has more than {MAX_FILE:,} bytes; name a file with tokens")
    lines = [(number, line.split()) for number, line in enumerate(data.decode("latin-1").splitlines(), 1)]
    given = [(number, words) for number, words in lines if words and not words[0].startswith("#")]
    if [len(words) for _, words in given] in ([], [1]):
        token = given[0][1][0] if given else ""
        return (Caller("", CallerRole.CATALOG, _token(token, f"--token-file {path}")),)
    callers = tuple(_caller(words, f"--token-file {path}, line {number}") for number, words in given)
    _check_distinct(path, callers)
    return callers


def _caller(words: Sequence[str], where: str) -> Caller:
    if len(words) != 3:
        raise InvalidInput(f"{where}: has {len(words)} words; write NAME ROLE TOKEN")
    name, role, token = words
    if role.upper() not in CallerRole.__members__ or role != role.lower():
        roles = ", ".join(one.name.lower() for one in CallerRole)
        raise InvalidInput(
            f"{where}: the second word is no role; write NAME ROLE TOKEN, the role one of {roles}"
        )
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{where}: the first word is no name; a name has at most {MAX_NAME} letters, digits, _ . @ -"
        )
    return Caller(name, CallerRole[role.upper()], _token(token, where))


def _token(text: str, where: str) -> bytes:
    if not MIN_TOKEN <= len(text) <= MAX_TOKEN or not _TOKEN.fullmatch(text):
        raise InvalidInput(
            f"{where}: a token has {MIN_TOKEN} to {MAX_TOKEN:,} characters, all visible ASCII; make "
            "one with: python3 -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return text.encode()


def _check_distinct(path: str, callers: Sequence[Caller]) -> None:
    for what, values in (("token", [one.token for one in callers]), ("name", [one.name for one in callers])):
        if len(set(values)) < len(values):
            raise InvalidInput(
                f"--token-file {path}: two lines have the same {what}; give each caller its own"
            )


def caller_with(token: bytes, callers: Sequence[Caller]) -> Caller | None:
    """Returns the caller with this token, None if no caller has it.

    The comparison takes equally long wherever two tokens differ, so its duration does not help to guess one.
    """
    caller = None
    for one in callers:
        if secrets.compare_digest(token, one.token):
            caller = one
    return caller
