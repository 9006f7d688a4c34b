"""A difference, and the faults of a file, in words; for the command and the operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lake_core.errors import InvalidInput
from lake_core.phrases import counted, listed, printable
from log_lake.policies.difference import Changed, Difference, NewPool
from log_lake.policies.limits import POLICY_LIMITS, PolicyLimits
from log_lake.policies.nodes import Fault
from log_lake.settings.settings import KNOWN


def fault_lines(
    source: str, faults: Sequence[Fault], *, limits: PolicyLimits = POLICY_LIMITS
) -> Iterator[str]:
    """Yields FILE:LINE:COLUMN and what is wrong, a line each; the last line counts the faults beyond the
    limit."""
    for fault in faults[: limits.max_faults]:
        yield printable(f"{source}:{fault.place.line}:{fault.place.column}: {fault.message}")
    if len(faults) > limits.max_faults:
        yield f"{source}: {counted(len(faults) - limits.max_faults, 'more fault')}"


def refusal(source: str, faults: Sequence[Fault]) -> InvalidInput:
    """Returns the error of a file with faults: the first of them, and how many there are."""
    more = f" (and {counted(len(faults) - 1, 'more fault')})" if len(faults) > 1 else ""
    return InvalidInput(f"{next(fault_lines(source, faults))}{more}; nothing was changed")


def difference_lines(difference: Difference) -> Iterator[str]:
    """Yields the changes, one line for each pool and each setting; the last line counts them."""
    return map(printable, _difference_lines(difference))


def _difference_lines(difference: Difference) -> Iterator[str]:
    for created in difference.created:
        yield from _created_lines(created)
    for changed in difference.changed:
        yield from _changed_lines(changed)
    for pool in difference.dropped:
        yield f"- pool {pool.name}: key {pool.key or '(arrival)'}, kind {pool.kind}"
    if difference.unnamed:
        names = listed(difference.unnamed)
        yield f"  not in the file, left as they are (--prune drops them): {names}"
    yield summary_line(difference)


def summary_line(difference: Difference) -> str:
    """Returns the number of changes, in words."""
    if difference.is_empty:
        return "nothing to do: the lake is as the file says"
    parts = (
        (difference.created, "to create"),
        (difference.changed, "to change"),
        (difference.dropped, "to drop"),
    )
    return ", ".join(f"{counted(len(pools), 'pool')} {what}" for pools, what in parts if pools)


def removal_question(difference: Difference) -> str:
    """Returns the pools and records that would be removed, as the command's question shows them."""
    parts = []
    if difference.dropped:
        names = listed([pool.name for pool in difference.dropped])
        parts.append(f"remove {counted(len(difference.dropped), 'pool')} ({names})")
    removing = [one.pool.name for one in difference.changed if one.removing]
    if removing:
        parts.append(f"let agents remove more from {counted(len(removing), 'pool')} ({listed(removing)})")
    return " and ".join(parts)


def difference_values(difference: Difference) -> dict[str, Any]:
    """Returns the difference as plain values, for `--json` and Airflow."""
    return {
        "created": [one.policy.name for one in difference.created],
        "changed": {
            one.pool.name: {
                name: {"before": before or None, "after": after or None}
                for name, (before, after) in one.settings.items()
            }
            for one in difference.changed
        },
        "dropped": [pool.name for pool in difference.dropped],
        "unnamed": list(difference.unnamed),
        "removing": {one.pool.name: list(one.removing) for one in difference.changed if one.removing},
    }


def _created_lines(created: NewPool) -> Iterator[str]:
    policy = created.policy
    aggregates = ", ".join(f"{name}={function}" for name, function in sorted(policy.aggregates.items()))
    line = f"+ pool {policy.name}: key {policy.key}, kind {policy.kind}"
    yield line + (f" ({aggregates})" if aggregates else "")
    if created.was_dropped:
        yield f"    it is made empty; lake restore {policy.name} takes the dropped pool of this name back instead"
    for name, text in sorted(policy.settings.items()):
        yield f"    {name} = {text}"


def _changed_lines(changed: Changed) -> Iterator[str]:
    yield f"~ pool {changed.pool.name}"
    removing = changed.removing
    for name, (before, after) in changed.settings.items():
        note = "  (agents will remove more)" if name in removing else ""
        yield f"    {name}: {_shown(name, before)} -> {_shown(name, after)}{note}"


def _shown(name: str, text: str) -> str:
    if text:
        return text
    default = KNOWN[name].default if name in KNOWN else ""
    return f"default ({default})" if default else "default"
