"""Decides which addresses a run may name: the lakes and files that come from its conf, its parameters or a form.

A worker opens every address with its own rights.  The author of a DAG may name any address; a person who starts
a run may not.  So an address that a run gives is allowed if it is

    a lake     a connection of type lake; an address of LAKE, LAKE_VIEW_LAKES or LAKE_ALLOWED_LAKES of the worker
    a file     below the fixed folder of the pool's `ingest.source` or `intervals.source`, or in LAKE_ALLOWED_FILES
    either     named by the DAG itself: a default of its parameters, or below the folder before the first template

In the variables, a name that ends in `/` or `*` allows everything below it, and `*` alone everything.  An
address that chains file systems, has `..`, or leads to this machine (`is_own_machine`) is always refused.  So
is a path that leads out of these places by a link.

`check` decides.  Called by the operators and the groups (`groups.tasks`).  Decision 177.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from airflow_lake.given import is_template
from log_lake.loading.own_machine import Resolve
from log_lake.loading.places import FILES, Places, below, files_of, named, normal, refusal
from log_lake.view.addresses import is_uri

LAKES = "LAKE_ALLOWED_LAKES"
"""The environment variable with more allowed lakes: addresses, separated by blanks."""

ANY_CONF = {"": ""}
"""Stands for the conf of a run when a DAG file is parsed, to find out which values a run would give."""

_OF_RUN = re.compile(
    r"\b(params_input|dag_run|get_dagrun|run_id|partition_key|triggering_asset_events|inlet_events)\b"
)
"""Values of Airflow that can be chosen by a person who starts a run, fills a form, or makes an event of an
asset."""
_OF_CONF = re.compile(r"\b(params|conf)\b")
"""Those of these values that come from the run's conf.  If a run has no conf, they are the values of the
DAG."""


def is_given(value: Any, *, conf: Mapping[str, Any] | None) -> bool:
    """Whether a template in the value reads something that the run, with this conf, provides."""
    match value:
        case str():
            return is_template(value) and bool(_OF_RUN.search(value) or (conf and _OF_CONF.search(value)))
        case list() | tuple() | set() | frozenset():
            return any(is_given(one, conf=conf) for one in value)
    return bool(conf) and type(value).__name__ == "DagParam"


def of_templates(value: Any) -> Places:
    """Returns as places the addresses in the DAG itself, and for its templates the folders before the first
    placeholder."""
    listed = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
    texts = [text for text in listed if isinstance(text, str) and text]
    exact = frozenset(normal(text) for text in texts if not is_template(text))
    return Places(exact) | below(text for text in texts if is_template(text))


def lakes_of(environ: Mapping[str, str]) -> Places:
    """Returns the lakes that the environment allows a run to name."""
    return named(environ.get(LAKES, "")) | Places(
        frozenset(
            normal(word) for name in ("LAKE", "LAKE_VIEW_LAKES") for word in environ.get(name, "").split()
        )
    )


def defaults(*params: Mapping[str, Any] | None) -> Places:
    """Returns the defaults of the parameters of a DAG and of a task, as places.

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


def check(
    address: str, *, what: str, task: str, places: Places, setting: str, resolve: Resolve | None = None
) -> None:
    """Raises InvalidInput if an address from a run is not allowed; the variable `setting` allows more.

    `what` is the name of the parameter.  `resolve` finds the addresses of hosts; None: this machine's resolver.
    """
    from lake_core.errors import InvalidInput

    otherwise = (
        f"a run may not name it; {_ALLOWED[setting]}. The variable {setting} of the workers allows more"
    )
    why = refusal(address, places, otherwise=otherwise, resolve=resolve)
    if why:
        raise InvalidInput(f"{task}: {what}={address!r}: {why}; nothing was done")


_ALLOWED = {
    LAKES: "it may name a connection of type lake, or the lake that the DAG, LAKE or LAKE_VIEW_LAKES says",
    FILES: "it may name files below the folders of the pool's ingest.source and intervals.source, or of the DAG",
}


def check_lake(name: str, *, task: str, places: Places, environ: Mapping[str, str]) -> None:
    """Raises InvalidInput if a run may not name this lake.  The id of a connection, and an empty name, are
    allowed."""
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
    """Raises InvalidInput if the run names a lake that it may not name; `asked` is the lake as the DAG file names
    it."""
    if is_given(asked, conf=conf):
        check_lake(name, task=task, places=of_templates(asked) | defaults, environ=environ)


def check_files(
    files: Iterable[str], *, task: str, places: Places, environ: Mapping[str, str], what: str = "files"
) -> None:
    """Raises InvalidInput if a run may not name these files; each is a name, a glob or a folder."""
    for file in files:
        check(file, what=what, task=task, places=places | files_of(environ), setting=FILES)
