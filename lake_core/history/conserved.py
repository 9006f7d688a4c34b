"""Decides from its entry and the references alone whether a rewriting conserves its records.

Called by `fold` and `rebase`.  The sums of the removed references must equal the sums of the new objects plus
those that the action `conserve` states for removed records. No object is read (decision 455).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lake_core.history.snapshot.reference import Reference
from lake_core.records import Action, AddObject
from lake_core.records.sums import Conserve, age_sum, unpacked_sums

AddedSums = tuple[int, int, int | None]
"""Number of records, sum of their content, and sum of their ages; None: not known."""

_BITS = 2**64


def sums_of(reference: Reference) -> AddedSums | None:
    """Returns the sums of a reference; None if it has none.  A merge moves ages, so then they are not known."""
    if not reference.content:
        return None
    content, *ages = unpacked_sums(reference.content)
    if reference.lifts:
        return reference.records, content, None
    if not ages:
        ages = [age_sum(reference.seq, reference.ordinal, records=reference.records)]
    return reference.records, content, ages[0]


def added_up(parts: Iterable[AddedSums]) -> AddedSums:
    """Returns the sums of all `parts` together."""
    records, content, ages = 0, 0, 0
    has_ages = True
    for one in parts:
        records, content, ages = records + one[0], content + one[1], ages + (one[2] or 0)
        has_ages = has_ages and one[2] is not None
    return records, content % _BITS, ages % _BITS if has_ages else None


def imbalance(removed: Sequence[Reference], actions: Sequence[Action]) -> str:
    """Returns in words which sums do not add up in a transaction that removes these references.  Returns "" if
    all add up, if the transaction states no sums, or if a removed reference has none."""
    stated = next((action for action in actions if isinstance(action, Conserve)), None)
    inputs = [sums_of(reference) for reference in removed]
    given = [one for one in inputs if one is not None]
    if stated is None or len(given) < len(inputs):
        return ""
    new = [action for action in actions if isinstance(action, AddObject)]
    if bare := next((action.object for action in new if not action.content), ""):
        return f"have sums, but the new object {bare} has none"
    before = added_up(given)
    after = added_up([_sums_of_new(action) for action in new] + [_taken(stated)])
    if before[:2] != after[:2] or (None not in (before[2], after[2]) and before[2] != after[2]):
        return f"hold {_words(before)}, but the new objects and what was taken {_words(after)}"
    return ""


def _sums_of_new(action: AddObject) -> AddedSums:
    content, *ages = unpacked_sums(action.content)
    return action.records, content, ages[0] if ages else None


def _taken(stated: Conserve) -> AddedSums:
    content, ages = unpacked_sums(stated.sums)
    return stated.records, content, ages


def _words(sums: AddedSums) -> str:
    ages = "" if sums[2] is None else f", sum of ages {sums[2]:016x}"
    return f"{sums[0]:,} records, content sum {sums[1]:016x}{ages}"
