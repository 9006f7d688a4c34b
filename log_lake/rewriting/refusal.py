"""The error of a rewriting whose new objects do not have the records that its inputs have."""

from __future__ import annotations

from lake_core.errors import NotConserved
from lake_core.phrases import counted
from log_lake.rewriting.rewriting import Rewriting

INPUTS_NAMED = 3
"""The number of inputs that the message names."""


def refusal(work: Rewriting, expected: str, output: str, *, id: str = "") -> NotConserved:
    """Returns the error for a rewriting whose inputs must give `expected`, while its new objects have `output`.

    `id`: the new object at fault; "": all of them.
    """
    outputs = f"the new object {id} has" if id else "the new objects have"
    return refused(work, f"must give {expected}, but {outputs} {output}")


def refused(work: Rewriting, fault: str) -> NotConserved:
    """Returns the error that names the rewriting and its inputs; `fault` continues the sentence after the
    inputs."""
    where = f"sub-pool {work.sub_pool!r}, " if work.sub_pool else ""
    return NotConserved(
        f"pool {work.config.name!r}, {where}branch {work.branch!r}: {counted(len(work.inputs), 'input')} of a "
        f"rewriting ({_named(work)}) {fault}; nothing was committed, and the inputs "
        f"stay: run `lake fsck {work.config.name} --data`, and report this as a fault of the program if "
        "that finds no damage"
    )


def _named(work: Rewriting) -> str:
    named = [f"{r.object} of {counted(r.records, 'record')}" for r in work.inputs[:INPUTS_NAMED]]
    more = len(work.inputs) - len(named)
    return ", ".join([*named, f"and {more:,} more"] if more else named)
