"""Decides whether a derived pool needs a step, by its policy and its standing; pure.

`log_lake.derived.settings` declares the settings `derive.*`, because making a derived pool needs them too.

A pool whose source cannot be followed counts as due: its work fails, and so the report says why.  A pool is looked
at in each run, since its source changes and the pool itself does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from log_lake.agents.work import Work
from log_lake.derived.settings import DerivePolicy, derive_policy_of
from log_lake.derived.standing import DerivedStanding, depth_of
from log_lake.settings import Settings

MOST_STEPS = 100
"""Steps of one piece of work. A pool that is far behind leaves the rest to the next run, so others get a turn."""


class DeriveWork(Work, frozen=True, kw_only=True):
    """A derived pool that is behind its source, whose name is `source`."""

    source: str = ""


def policy_of(settings: Settings) -> DerivePolicy | None:
    """The policy of a derived pool; None for a pool that is not derived."""
    return derive_policy_of(settings)


def is_due(standing: DerivedStanding) -> bool:
    """Whether a step would change the pool, or would say why it cannot be kept."""
    return bool(standing.fault) or standing.behind != 0 or not standing.version


def sources_first(pools: Sequence[str], sources: Mapping[str, str]) -> list[str]:
    """Returns the pools in an order in which each comes after its source; `sources` are the sources by pool, both
    by name."""
    return sorted(pools, key=lambda pool: (depth_of(pool, sources), pool))
