"""Decides which files an untrusted person may name. A list of places says what is allowed; this module checks
whether an address is in one of them.

A process opens every address with its own rights.  So a person who starts a run, or asks a server, may name
only files in given places.  An address that chains file systems, has `..`, or leads to this machine
(`is_own_machine`) is always refused.  So is a path that leads out of its place by a link.

Called by `airflow_lake.allowed`, and by the service of `lake serve`.  Decision 177.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from log_lake.loading.own_machine import Resolve, is_own_machine, resolved

if TYPE_CHECKING:
    from log_lake.settings import Settings

FILES = "LAKE_ALLOWED_FILES"
"""The environment variable with more allowed addresses, separated by blanks."""

_MARK = re.compile(r"[*?\[%]|\{\{|\{%|\{#")
"""Finds the end of the fixed part of an address: a wildcard, a code of a time, or a template begins here."""
_IN_BRACKETS = re.compile(r"\[[0-9A-Fa-f:.%]*\]")
"""An IPv6 address as the host of a URI."""
_ALIASES = {"s3a": "s3", "gcs": "gs", "local": "file"}
_BUCKETS = ("s3", "gs")


@dataclass(frozen=True)
class Places:
    """The addresses that a person may name: exactly those in `exact`, and all below the folders in `below`, which
    end in a slash."""

    exact: frozenset[str] = frozenset()
    below: tuple[str, ...] = ()

    def __or__(self, other: Places) -> Places:
        return Places(self.exact | other.exact, (*self.below, *other.below))

    def have(self, address: str) -> bool:
        """Whether the address, in the form of `normal`, is allowed."""
        return address in self.exact or any(f"{address}/".startswith(folder) for folder in self.below)

    @property
    def real(self) -> Places:
        """The same places, with the links of this machine resolved."""
        exact = frozenset(os.path.realpath(one) for one in self.exact if one and "://" not in one)
        folders = (one and os.path.join(os.path.realpath(one), "") for one in self.below if "://" not in one)
        return Places(exact, tuple(folders))


NONE = Places()


def below(patterns: Iterable[str]) -> Places:
    """Returns as places all addresses below the fixed folders of glob patterns.  A folder must be at least a
    bucket, or one level below the root."""
    folders = []
    for pattern in patterns:
        mark = _MARK.search(pattern)
        fixed = pattern if mark is None else pattern[: pattern.rfind("/", 0, mark.start()) + 1]
        folder = f"{normal(fixed)}/" if fixed else ""
        scheme, has_scheme, rest = folder.partition("://")
        if (rest if has_scheme else scheme).strip("/") and ".." not in folder.split("/"):
            folders.append(folder)
    return Places(below=tuple(folders))


def sources(settings: Settings | Mapping[str, str]) -> Places:
    """Returns as places all addresses in the folders that the pool loads from (`ingest.source`,
    `intervals.source`)."""
    return below(str(settings[name]) for name in ("ingest.source", "intervals.source"))


def named(words: str) -> Places:
    """Returns the places that the text of a variable names, in which blanks separate them."""
    exact, folders = set(), []
    for word in words.split():
        if word == "*":
            folders.append("")
        elif word.endswith(("/", "*")):
            folders.append(f"{normal(word.rstrip('*'))}/")
        else:
            exact.add(normal(word))
    return Places(frozenset(exact), tuple(folders))


def files_of(environ: Mapping[str, str]) -> Places:
    """Returns the places of files that the environment allows."""
    return named(environ.get(FILES, ""))


def normal(address: str) -> str:
    """Returns the address in one spelling: without a slash at the end; a local one as a path."""
    scheme, has_scheme, rest = address.partition("://")
    if not has_scheme:
        return _path(address) if address else ""
    scheme = _ALIASES.get(scheme, scheme)
    return _path(rest) if scheme == "file" else f"{scheme}://{rest.rstrip('/')}"


def _path(path: str) -> str:
    path = posixpath.normpath(path)
    return f"/{path.lstrip('/')}" if path.startswith("/") else path


def refusal(address: str, places: Places, *, otherwise: str, resolve: Resolve | None = None) -> str:
    """Returns why the address may not be opened; "" if it may.

    `otherwise` is the reason for an address that is safe, but not in the places.  `resolve` finds the addresses
    of hosts; without it, this machine's resolver is used.
    """
    why = _unsafe(address, resolve or resolved)
    if why:
        return why
    spelt = normal(address)
    if not places.have(spelt):
        return otherwise
    if "://" not in spelt and not places.real.have(os.path.realpath(spelt)):
        return f"a link leads from there to {os.path.realpath(spelt)!r}"
    return ""


def _unsafe(address: str, resolve: Resolve) -> str:
    """Returns why the address is refused in any case; "" if it is safe."""
    if "::" in _IN_BRACKETS.sub("", address):
        return "it chains file systems, which is not allowed here"
    if "\\" in address or not address.isprintable():
        return "it has a backslash, or a character that cannot be printed"
    if ".." in unquote(unquote(address)).replace("\\", "/").split("/"):
        return "it has '..', by which it may leave its folder"
    scheme, has_scheme, _ = address.partition("://")
    if not has_scheme or _ALIASES.get(scheme, scheme) in (*_BUCKETS, "file"):
        return ""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return "it is not a URI"
    if not host.isascii():  # its clients and `resolve` may take it for different hosts (decision 448)
        return f"its host {host!r} has signs beyond ASCII; write the host as DNS has it (xn--...)"
    if is_own_machine(host, resolve):
        return f"its host {host!r} is the worker's own machine, or one that only it reaches"
    return ""
