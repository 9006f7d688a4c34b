"""Deletes records of a pool by one small transaction, a tombstone, whatever their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lake import given
from airflow_lake.effects import TRUNCATE
from airflow_lake.given import LEFT_OUT, LeftOut
from airflow_lake.operators.base import LakeOperator, plain

if TYPE_CHECKING:
    from airflow.sdk import Context


class LakeDeleteOperator(LakeOperator):
    """Deletes the records from `low` (inclusive) to `high` (exclusive) that fulfil `where`, as `lake delete` does.

    At least one of `low`, `high` and `where` must be given; `everything=True` deletes all records of the pool.
    In a run that was not started by a schedule, a backfill or an asset, bounds of the run's interval are
    refused unless `by_hand=True`.
    """

    works_in_transaction: ClassVar[bool] = True
    template_fields: Sequence[str] = (
        *LakeOperator.template_fields,
        "low",
        "high",
        "where",
        "reason",
        "token",
    )

    def __init__(
        self,
        *,
        low: str | LeftOut = LEFT_OUT,
        high: str | LeftOut = LEFT_OUT,
        where: str | LeftOut = LEFT_OUT,
        everything: bool = False,
        reason: str = "",
        token: str | None = None,
        by_hand: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        everything = given.fixed_flag(everything, "everything", who=self.task_id)
        bounds = given.bounds(who=self.task_id, low=low, high=high, where=where)
        if everything == any(text is not None for text in bounds.values()):
            raise ValueError(
                f"{self.task_id}: give one or more of low, high and where, or everything=True and none of them"
            )
        self.low, self.high, self.where = bounds["low"], bounds["high"], bounds["where"]
        self.asked |= {**bounds, **self.asked_token(token)}
        self.everything = everything
        self.by_hand = given.fixed_flag(by_hand, "by_hand", who=self.task_id)
        self.reason = reason
        self.token = token

    def take(self) -> None:
        """Reads the rendered parameters, also the reason of the delete."""
        super().take()
        self.reason = given.text_or_empty(self.reason, "reason", task=self.task_id)

    def act(self, context: Context) -> dict[str, Any]:
        """Returns the result: version (None if there was nothing to delete), transaction_id, covers, and the
        number of `records` that it deleted (an upper bound unless `is_exact`)."""
        from log_lake.texts.keytext import RangeText

        self.refuse_given_interval(context, by_hand=self.by_hand)
        branch = self.get_lake().pool(self.pool_name).branch(self.branch, to_delete=True)
        result = branch.delete(
            key_range=RangeText(low=self.low, high=self.high),
            where=self.where,
            reason=self.reason,
            token=self.token_of(context, self.token),
            count=True,
        )
        self.warn_if_repeated(result)
        values = plain(result, pool=self.pool_name)
        change = TRUNCATE if self.everything else ""
        self.effects = (self.done_effect({"version": result.version}, reads=True, change=change),)
        self.log.info("%s", values)
        return values
