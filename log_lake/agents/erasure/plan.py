"""Decides which erasures of a pool a run resumes, and whether it begins a new one; pure.

Every run resumes pending erasures until no object holds matching records.  If the run names records, it erases
these too; if an erasure of the same records is pending, it resumes that one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange
from log_lake.erasure.receipt import PENDING, Receipt
from log_lake.settings import Settings
from log_lake.settings.setting_types import duration
from log_lake.texts.keytext import RangeText


@dataclass(frozen=True)
class NamedRecords:
    """The records that a run names: by a condition, by a range of keys as it was written, or by both."""

    span: RangeText
    where: str | None


def named_records(
    *, where: str | None, key: str | None, low: str | None, high: str | None, pools: tuple[str, ...]
) -> NamedRecords | None:
    """Returns the records that the parameters of a run name; None if they name none.

    Raises InvalidInput for an ambiguous range, or if the run names no pool.
    """
    if key is not None and (low is not None or high is not None):
        raise InvalidInput("give either the parameter 'key', or 'from' and 'to'; nothing was done")
    if where is None and key is None and low is None and high is None:
        return None
    if not pools:
        raise InvalidInput(
            "the run names records and no pool: name the pools in the parameter 'pools'; nothing was done"
        )
    return NamedRecords(RangeText(prefix=key) if key is not None else RangeText(low=low, high=high), where)


@dataclass(frozen=True)
class ErasurePlan:
    """The `pending` erasures to resume, oldest first.  `is_new`: none of them erases the records that the run
    names."""

    pending: tuple[Receipt, ...]
    is_new: bool = False

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self.pending and not self.is_new


def plan_erasures(
    receipts: Iterable[Receipt], *, sub_pool: str, span: KeyRange | None = None, where: str | None = None
) -> ErasurePlan:
    """Returns the erasures to do in a pool, or in one of its sub-pools.

    `span` is the range of the records that the run names, None if it names none; `where` is their condition.
    """
    pending = tuple(
        sorted(
            (one for one in receipts if one.status == PENDING and (not sub_pool or one.sub_pool == sub_pool)),
            key=lambda one: (one.begun, one.id),
        )
    )
    named = (sub_pool, span, where)
    is_new = span is not None and named not in {(one.sub_pool, one.key_range, one.where) for one in pending}
    return ErasurePlan(pending, is_new)


@dataclass(frozen=True)
class ErasurePolicy:
    """How an erasure treats objects that a load may still need.

    `grace`: for this many seconds an object that was never committed may belong to a load that still runs.
    """

    grace: float


def policy_of(settings: Settings, *, grace: str | None = None) -> ErasurePolicy:
    """Returns the policy that `vacuum.grace` describes, or the run's duration `grace` if it has one.  Raises
    InvalidInput."""
    if grace is None:
        return ErasurePolicy(settings["vacuum.grace"])
    try:
        return ErasurePolicy(duration(grace))
    except ValueError as error:
        raise InvalidInput(f"parameter 'grace': {grace!r}: {error}; nothing was done") from error
