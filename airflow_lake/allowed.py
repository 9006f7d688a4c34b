"""Which addresses a run may name: the lakes and files that come from its conf, its parameters or a form.

A worker opens every address with its own rights.  The author of a DAG may name any address; a person who
starts a run may not.  So an address that a run gives is allowed if it is

    a lake     a connection of type lake; an address of LAKE, LAKE_VIEW_LAKES or LAKE_ALLOWED_LAKES of the worker
    a file     below the fixed folder of the pool's `ingest.source` or `intervals.source`, or in LAKE_ALLOWED_FILES
    either     what the DAG itself says: a default of its parameters, or below the folder before the first template

In the variables, a name that ends in `/` or `*` allows what is below it, and `*` alone everything.  An address that
chains file systems, has `..`, or leads to this machine (`is_own_machine`) is refused all the same.  So is
a path that a link leads out of these places.

`check` decides.  Callers: the operators, the groups (`groups.tasks`).  Decision 177.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from airflow_lake.given import is_template
from log_lake.loading.own_machine import Resolve, is_own_machine, resolved
from log_lake.view.addresses import is_uri

if TYPE_CHECKING:
    from log_lake.settings import Settings

LAKES, FILES = "LAKE_ALLOWED_LAKES", "LAKE_ALLOWED_FILES"
"""The variables that widen what is allowed: addresses, separated by blanks."""

ANY_CONF = {"": ""}
"""Stands for the conf of a run when a DAG file is parsed: whether a value would be one that the run gives."""

_OF_RUN = re.compile(
    r"\b(params_input|dag_run|get_dagrun|run_id|partition_key|triggering_asset_events|inlet_events)\b"
)
"""Values of Airflow that a person who starts a run, fills a form, or makes an event of an asset, may choose."""
_OF_CONF = re.compile(r"\b(params|conf)\b")
"""The same, of the run's conf: without one they are what the DAG says."""
_MARK = re.compile(r"[*?\[%]|\{\{|\{%|\{#")
"""Where the fixed part of a pattern, a path with times, or a template ends."""
_IN_BRACKETS = re.compile(r"\[[0-9A-Fa-f:.%]*\]")
"""An IPv6 address as the host of a URI."""
_ALIASES = {"s3a": "s3", "gcs": "gs", "local": "file"}
_BUCKETS = ("s3", "gs")


@dataclass(frozen=True)
class Places:
    """Allowed addresses: exactly those in `exact`, and those below the folders in `below`, which end in a
    slash."""

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


def is_given(value: Any, *, conf: Mapping[str, Any] | None) -> bool:
    """Whether a template in the value reads something that the run, with this conf, provides."""
    match value:
        case str():
            return is_template(value) and bool(_OF_RUN.search(value) or (conf and _OF_CONF.search(value)))
        case list() | tuple() | set() | frozenset():
            return any(is_given(one, conf=conf) for one in value)
    return bool(conf) and type(value).__name__ == "DagParam"


def of_templates(value: Any) -> Places:
    """The addresses in the DAG itself, and for its templates the folders before the first placeholder."""
    listed = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
    texts = [text for text in listed if isinstance(text, str) and text]
    exact = frozenset(normal(text) for text in texts if not is_template(text))
    return Places(exact) | below(text for text in texts if is_template(text))


def below(patterns: Iterable[str]) -> Places:
    """The addresses below the fixed folders of patterns; a folder is at least a bucket, or one level below
    the root."""
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
    """All addresses in the folders that the pool loads from (`ingest.source`, `intervals.source`)."""
    return below(str(settings[name]) for name in ("ingest.source", "intervals.source"))


def named(words: str) -> Places:
    """The addresses in a variable, separated by blanks."""
    exact, folders = set(), []
    for word in words.split():
        if word == "*":
            folders.append("")
        elif word.endswith(("/", "*")):
            folders.append(f"{normal(word.rstrip('*'))}/")
        else:
            exact.add(normal(word))
    return Places(frozenset(exact), tuple(folders))


def lakes_of(environ: Mapping[str, str]) -> Places:
    """The lakes that the environment allows."""
    return named(environ.get(LAKES, "")) | Places(
        frozenset(
            normal(word) for name in ("LAKE", "LAKE_VIEW_LAKES") for word in environ.get(name, "").split()
        )
    )


def files_of(environ: Mapping[str, str]) -> Places:
    """The files that the environment allows."""
    return named(environ.get(FILES, ""))


def defaults(*params: Mapping[str, Any] | None) -> Places:
    """The defaults of the parameters of a DAG and of a task.

    Call this while the DAG file is parsed: when a task runs, Airflow has replaced the defaults by the values of
    the run.
    """
    exact = set()
    for one in params:
        for value in (one or {}).values():
            value = getattr(value, "value", value)
            exact |= {
                normal(text)
                for text in (value if isinstance(value, list) else [value])
                if isinstance(text, str)
            }
    return Places(frozenset(exact))


def normal(address: str) -> str:
    """The address in one spelling: without a slash at the end; a local one as a path."""
    scheme, has_scheme, rest = address.partition("://")
    if not has_scheme:
        return _path(address) if address else ""
    scheme = _ALIASES.get(scheme, scheme)
    return _path(rest) if scheme == "file" else f"{scheme}://{rest.rstrip('/')}"


def _path(path: str) -> str:
    path = posixpath.normpath(path)
    return f"/{path.lstrip('/')}" if path.startswith("/") else path


def check(
    address: str, *, what: str, task: str, places: Places, setting: str, resolve: Resolve | None = None
) -> None:
    """Raises InvalidInput if an address from a run is not allowed; the variable `setting` allows more.

    `what` is the name of the parameter.  `resolve` finds the addresses of hosts; None: this machine's resolver.
    """
    from lake_core.errors import InvalidInput

    why = _unsafe(address, resolve or resolved)
    spelt = normal(address)
    if (
        not why
        and places.have(spelt)
        and "://" not in spelt
        and not places.real.have(os.path.realpath(spelt))
    ):
        why = f"a link leads from there to {os.path.realpath(spelt)!r}"
    if not why and not places.have(spelt):
        why = f"a run may not name it; {_ALLOWED[setting]}. The variable {setting} of the workers allows more"
    if why:
        raise InvalidInput(f"{task}: {what}={address!r}: {why}; nothing was done")


_ALLOWED = {
    LAKES: "it may name a connection of type lake, or the lake that the DAG, LAKE or LAKE_VIEW_LAKES says",
    FILES: "it may name files below the folders of the pool's ingest.source and intervals.source, or of the DAG",
}


def check_lake(name: str, *, task: str, places: Places, environ: Mapping[str, str]) -> None:
    """Like `check`, for a lake.  The id of a connection, and an empty name, are allowed.  Raises
    InvalidInput."""
    if is_uri(name):
        check(name, what="lake", task=task, places=places | lakes_of(environ), setting=LAKES)


def check_lake_of_run(
    name: str,
    *,
    asked: Any,
    defaults: Places,
    conf: Mapping[str, Any] | None,
    task: str,
    environ: Mapping[str, str],
) -> None:
    """Raises InvalidInput for a lake that the run names and may not name; `asked` is what the DAG says."""
    if is_given(asked, conf=conf):
        check_lake(name, task=task, places=of_templates(asked) | defaults, environ=environ)


def check_files(
    files: Iterable[str], *, task: str, places: Places, environ: Mapping[str, str], what: str = "files"
) -> None:
    """Like `check`, for files; each is a name, a glob or a folder.  Raises InvalidInput."""
    for file in files:
        check(file, what=what, task=task, places=places | files_of(environ), setting=FILES)


def _unsafe(address: str, resolve: Resolve) -> str:
    """Why the address is refused wherever it is; "" if it is not."""
    if "::" in _IN_BRACKETS.sub("", address):
        return "it chains file systems, which a run may not"
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
    if is_own_machine(host, resolve):
        return f"its host {host!r} is the worker's own machine, or one that only it reaches"
    return ""
