"""Links from a task to the web view: to its pool and to its transaction, at the version that it committed.

When a task has ended, Airflow asks for the links in the worker, and stores them.  A task that worked on several
pools links to the jobs of its lake.  The view must show the lake by the name that the task uses
(docs/web-view.md).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

from airflow_lake.effects import Effect, only_target
from airflow_lake.lineage import Tells
from airflow_lake.view.plugin import PREFIX
from log_lake.view.addresses import key_of


class _ViewLink(BaseOperatorLink):
    """A link to a page of the view."""

    page: str

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Returns the address of the page; empty if the task worked on no pool."""
        if not isinstance(operator, Tells):  # a mapped task that Airflow could not expand
            return ""
        effects = list(operator.effects or operator.planned_effects())
        if not effects or not all(map(_is_filled_in, effects)):
            return ""
        return address(self.page, only_target(effects), lake=effects[0].lake)


def _is_filled_in(effect: Effect) -> bool:
    """Whether the effect names a lake, a pool and a branch as texts.

    If the templates of a task could not be filled in, its effect has what the DAG file says, for example the
    result of another task.
    """
    return all(isinstance(name, str) for name in (effect.lake, effect.pool, effect.branch))


class PoolLink(_ViewLink):
    """The link from a task to the geometry of its pool."""

    name = "Pool"
    page = "geometry"


class TransactionLink(_ViewLink):
    """The link from a task to its transaction in the log of the pool."""

    name = "Transaction"
    page = "log"


LINKS = (PoolLink(), TransactionLink())


def address(page: str, target: Effect | None, *, lake: str) -> str:
    """Returns the view's address `#PAGE/LAKE/POOL/VERSION/BRANCH`, or `#jobs/LAKE` if the task has not exactly one
    pool."""
    if target is None:
        parts = ["jobs", key_of(lake)]
    else:
        parts = [page, key_of(lake), target.pool]
        if target.version is not None:
            parts += [str(target.version), target.branch]
    base = conf.get("api", "base_url", fallback="/").rstrip("/")
    return f"{base}{PREFIX}/#" + "/".join(quote(part, safe="") for part in parts)
