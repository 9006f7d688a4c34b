"""A group of tasks as one transaction over pools: all its writes become visible at one moment, or none.

    with LakeTransaction(pools=["orders", "totals"]) as tx:
        load = LakeLoadOperator(task_id="load", pool_name="orders", files="...", transaction=tx.id)
        check = LakeQueryOperator(task_id="check", sql="...", must_hold=True, transaction=tx.id)
        load >> check

`begin` is a setup, `end` its teardown; `commit` runs if each task of the block has succeeded.  If one fails or
is skipped, `end` aborts.  docs/transactions.md describes a clear, a retry and a second run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from airflow.sdk import TaskGroup

from airflow_lake import given
from airflow_lake.groups.config import check_xcom
from airflow_lake.groups.transaction_tasks import LakeBeginOperator, LakeCommitOperator, LakeEndOperator
from log_lake.agents.roster import ParameterKind
from log_lake.lake.open_transactions import LONGEST, OPEN_FOR


class LakeTransaction(TaskGroup):
    """A group of tasks between `begin` and `commit`; `id` is the transaction in which they write.

    `pools`: the pools that it writes to; they join it at the begin.  `lake` as for the operators.  It may stay
    open for `open_for` seconds, also while it waits for a person; then the retention agent ends it.  With
    `once=False` a run that is cleared after its commit works again, in another transaction; so give it only
    tasks that may be repeated.
    """

    def __init__(
        self,
        *,
        pools: Sequence[str] | str,
        lake: str = "",
        group_id: str = "transaction",
        message: str = "",
        open_for: float = OPEN_FOR,
        once: bool = True,
        default_args: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        names = given.declared(pools, "pools", ParameterKind.TEXTS, who="LakeTransaction", fixed=True)
        if given.is_template(names) or not names:
            raise ValueError(f"LakeTransaction: pools must be names of pools, no templates (got {pools!r})")
        if not isinstance(open_for, int | float) or not 0 < open_for <= LONGEST:
            raise ValueError(
                f"LakeTransaction: open_for must be seconds, at most those of a year (got {open_for!r})"
            )
        super().__init__(group_id=group_id, default_args=dict(default_args or {}), **kwargs)
        if next(self.iter_mapped_task_groups(), None) is not None:
            raise ValueError(
                "LakeTransaction: may not be in a mapped group: a run has one transaction of a group, so each "
                "mapped index would abort that of the others. Map the tasks inside instead"
            )
        check_xcom(
            {**self.dag.default_args, **self.default_args}, who="LakeTransaction", what="the transaction"
        )
        self.pools = sorted(set(names))
        self.of_lake = (
            {"lake": lake} if lake else {}
        )  # otherwise that of the default_args, as for the tasks inside
        self.begin = LakeBeginOperator(
            task_id="begin",
            task_group=self,
            dag=self.dag,
            pools=self.pools,
            message=message,
            open_for=open_for,
            once=given.fixed_flag(once, "once", who="LakeTransaction"),
            **self.of_lake,
        )

    @property
    def id(self) -> Any:
        """The id of the transaction, for `transaction=` of operators, and for tasks of your own."""
        return self.begin.output

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Puts the tasks of the block between `begin` and `commit`."""
        if error is None:
            inside = [task for task in self.iter_tasks() if task is not self.begin]
            self.begin.inside = tuple(task.task_id for task in inside)
            of_all = {**self.of_lake, "transaction": self.id}
            commit = LakeCommitOperator(
                task_id="commit", pools=self.pools, trigger_rule="all_success", **of_all
            )
            end = LakeEndOperator(task_id="end", **of_all)
            for task in inside:
                self.begin >> task >> commit
            self.begin >> commit >> end.as_teardown(setups=self.begin)
        super().__exit__(kind, error, trace)
