"""Compares a policy file with the list of pools: what to create, change and drop; pure.

A pool that the file names gets exactly the file's settings.  Pools that it does not name stay, unless the caller
prunes. The lake's own pools (`naming.OWN_POOLS`) always stay, and no file may name them.  Key, kind and
aggregates of a pool never change: a file with other ones is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lake_core.catalog.state import PoolsState
from lake_core.naming import OWN_POOLS
from lake_core.records.pools import PoolConfig
from log_lake.policies.file import PolicyFile, PoolPolicy
from log_lake.policies.nodes import Fault
from log_lake.settings.settings import KNOWN, Settings


@dataclass(frozen=True)
class NewPool:
    """A pool to create.  `was_dropped`: a dropped pool with this name could be restored, with its records."""

    policy: PoolPolicy
    was_dropped: bool = False


@dataclass(frozen=True)
class Changed:
    """A pool whose settings change: for each setting the text before and after; "" means that it is not set."""

    pool: PoolConfig
    settings: Mapping[str, tuple[str, str]]

    @property
    def changes(self) -> dict[str, str]:
        """The settings in the form for `Lake.change_pools`."""
        return {name: after for name, (_, after) in self.settings.items()}

    @property
    def removing(self) -> tuple[str, ...]:
        """The changed settings that make agents remove more than before."""
        texts = {name: text for name, text in self.pool.settings.items() if _can_be_read(name, text)}
        before = Settings(texts)
        after = Settings({name: text for name, text in {**texts, **self.changes}.items() if text})
        return tuple(
            name for name in self.settings if name in KNOWN and KNOWN[name].removes_more(before, after)
        )


@dataclass(frozen=True)
class Difference:
    """What must be done so that the lake matches the file: the pools to create, change and drop, each by name.
    `unnamed`: pools that the file does not name and that stay."""

    created: tuple[NewPool, ...] = ()
    changed: tuple[Changed, ...] = ()
    dropped: tuple[PoolConfig, ...] = ()
    unnamed: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the lake matches the file."""
        return not (self.created or self.changed or self.dropped)

    @property
    def removes(self) -> bool:
        """Whether it drops a pool, or lets agents remove more than before."""
        return bool(self.dropped) or any(one.removing for one in self.changed)


def compare(file: PolicyFile, state: PoolsState, *, prune: bool = False) -> tuple[Difference, list[Fault]]:
    """Returns the difference, and what is refused. If anything is refused, nothing may be carried out."""
    dropped_names = {one.pool.name for one in state.dropped.values() if not one.is_deleted}
    created: list[NewPool] = []
    changed: list[Changed] = []
    faults: list[Fault] = []
    for name, policy in sorted(file.pools.items()):
        pool_id = state.names.get(name)
        if pool_id is None:
            created.append(NewPool(policy, name in dropped_names))
            continue
        pool = state.pools[pool_id]
        faults += _refused(policy, pool)
        settings = {
            setting: (pool.settings.get(setting, ""), policy.settings.get(setting, ""))
            for setting in sorted({*pool.settings, *policy.settings})
            if pool.settings.get(setting, "") != policy.settings.get(setting, "")
        }
        if settings:
            changed.append(Changed(pool, settings))
    others = sorted(set(state.names) - set(file.pools) - set(OWN_POOLS))
    difference = Difference(
        tuple(created),
        tuple(changed),
        tuple(state.pools[state.names[name]] for name in others) if prune else (),
        () if prune else tuple(others),
    )
    return difference, faults


def _refused(policy: PoolPolicy, pool: PoolConfig) -> Iterator[Fault]:
    """Yields a fault for each property of a pool that the file would change, but that cannot change."""
    never = "a pool keeps it: write what it has, or make a pool of another name"
    if policy.key != pool.key:
        yield Fault(
            policy.place("key"),
            f"pool {pool.name!r} has the key {pool.key} (the file: {policy.key}); {never}",
        )
    if policy.kind != pool.kind:
        yield Fault(
            policy.place("kind"),
            f"pool {pool.name!r} has the kind {pool.kind} (the file: {policy.kind}); {never}",
        )
    elif dict(policy.aggregates) != pool.aggregates:
        yield Fault(
            policy.place("aggregates"),
            f"pool {pool.name!r} has the aggregates {_functions(pool.aggregates)} (the file: "
            f"{_functions(policy.aggregates)}); {never}",
        )


def _functions(aggregates: Mapping[str, str]) -> str:
    return ",".join(f"{name}={function}" for name, function in sorted(aggregates.items())) or "none"


def _can_be_read(name: str, text: str) -> bool:
    """Whether this program accepts the stored text; another release may have stored it."""
    try:
        KNOWN[name].parse(text)
    except (KeyError, ValueError):
        return False
    return True
