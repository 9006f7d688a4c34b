"""Begins, commits and ends a transaction over pools; `groups.LakeTransaction` puts these tasks around others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_lake import given
from airflow_lake.assets import lake_alias, lake_asset
from airflow_lake.given import is_template
from airflow_lake.operators.base import LakeOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from log_lake.lake import Lake

RUN = "airflow:{dag}:{run}:{group}"
"""The token of a run's transaction: a second commit of the same run changes nothing."""


class LakeTransactionOperator(LakeOperator):
    """The base of the operators that begin, commit and end a transaction; its work belongs to no single
    pool."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(pool_name="", **kwargs)

    def take(self) -> None:
        """Reads the name of the lake, and the id of the transaction."""
        self.take_asked()


class LakeBeginOperator(LakeTransactionOperator):
    """Begins a transaction in these pools, and returns its id.

    If the run has committed before, this task is skipped, and so are the tasks after it, unless `once` is False.
    A transaction that an earlier try began and did not commit is aborted.  `inside`: the tasks that work in the
    transaction.  None of them may have ended before, because its writes were in a transaction that is gone.
    """

    template_fields: Sequence[str] = ("lake", "message")

    def __init__(
        self, *, pools: Sequence[str], message: str = "", open_for: float, once: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.once = once
        self.pools = list(pools)
        self.message = message
        self.open_for = open_for
        self.inside: tuple[str, ...] = ()

    def take(self) -> None:
        """Reads also the message of the transaction."""
        super().take()
        self.message = given.text_or_empty(self.message, "message", task=self.task_id)

    def act(self, context: Context) -> str:
        """Begins the transaction and returns its id.

        Raises AirflowSkipException if the run has committed, InvalidInput if a task inside has ended, NotFound
        (a pool), Unavailable.
        """
        from airflow.sdk.exceptions import AirflowSkipException

        from lake_core.errors import LakeError
        from log_lake.lake.transaction_branch import first_use

        task, lake = context["ti"], self.get_lake()
        token = RUN.format(dag=task.dag_id, run=task.run_id, group=self.task_id.rpartition(".")[0])
        if self.once and (versions := first_use([lake.pool(name) for name in self.pools], token)):
            raise AirflowSkipException(
                f"this run committed the versions {versions} before, and changes nothing more; to work on other "
                "data, start a new run"
            )
        self._check_cleared(task)
        self._abort_earlier(lake, token)
        if not self.once:
            token = f"{token}:{lake.context.ids.new()}"
        transaction = lake.transaction(token=token, message=self.message, open_for=self.open_for)
        try:
            for pool in self.pools:
                transaction.pool(pool)
        except LakeError:
            transaction.abort()
            raise
        self.log.info("transaction %s over %s", transaction.id, ", ".join(self.pools))
        return transaction.id

    def _check_cleared(self, task: Any) -> None:
        """Raises InvalidInput if a person cleared this task, but not every task inside: the new transaction would
        lack the writes of the others."""
        from lake_core.errors import InvalidInput

        for one in self.inside:
            states = task.get_task_states(dag_id=task.dag_id, task_ids=[one], run_ids=[task.run_id])
            if "success" in states.get(task.run_id, {}).values():
                raise InvalidInput(
                    f"{self.task_id}: {one} has ended in an earlier transaction of this run, which is gone with "
                    "what it wrote; clear all tasks of the group, or the whole run"
                )

    def _abort_earlier(self, lake: Lake, token: str) -> None:
        """Aborts a transaction that this run began and did not commit."""
        from lake_core.errors import Conflict
        from log_lake.lake.open_transactions import transactions

        for row in transactions(lake):
            if token not in (row.token, row.token.rpartition(":")[0]) or row.state not in (
                "open",
                "committing",
            ):
                continue
            try:
                lake.transaction(row.id).abort()
                self.log.info("transaction %s of an earlier try is aborted", row.id)
            except Conflict as error:  # it was committed just now, and the commit of this one will say so
                self.log.info("%s", error)


class LakeCommitOperator(LakeTransactionOperator):
    """Commits a transaction in all of its pools at one moment, and then emits the events of their assets."""

    works_in_transaction = True
    template_fields: Sequence[str] = ("lake", "transaction")

    def __init__(self, *, pools: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alias = lake_alias(self.lake)
        self.assets = (
            {} if is_template(self.lake) else {pool: lake_asset(pool, lake=self.lake) for pool in pools}
        )
        for outlet in self.assets.values() or [self.alias]:
            self.add_outlet(outlet)

    def act(self, context: Context) -> dict[str, Any]:
        """Returns, for each pool, the version at which the transaction became visible there.

        Raises AirflowFailException (it was aborted, or a pool refuses it: no other try can commit it),
        OutcomeUnknown, Unavailable.
        """
        from airflow.sdk.exceptions import AirflowFailException

        from lake_core.errors import Conflict

        try:
            result = self.get_lake().transaction(self.transaction).commit()
        except Conflict as error:
            raise AirflowFailException(f"{self.task_id}: {error}; clear all tasks of the group") from error
        if result.repeated:
            self.log.warning(
                "nothing was committed now: an earlier try of this run committed the versions %s. If it is to "
                "work on other data, start a new run",
                result.versions,
            )
        self._announce(result.versions, context)
        self.log.info("transaction %s is committed: %s", result.id, result.versions)
        return {"id": result.id, "versions": result.versions, "repeated": result.repeated}

    def _announce(self, versions: Mapping[str, int], context: Context) -> None:
        """Emits an event for each pool that has changed, and none for the others."""
        from airflow_lake.assets import withhold

        withhold(self, [asset for pool, asset in self.assets.items() if pool not in versions])
        events = context["outlet_events"]
        for pool, version in versions.items():
            extra = {"version": version}
            if pool in self.assets:
                events[self.assets[pool]].extra = extra
            elif not self.assets:
                events[self.alias].add(lake_asset(pool, lake=self.lake), extra=extra)


class LakeEndOperator(LakeTransactionOperator):
    """Aborts a transaction unless it is committed."""

    works_in_transaction = True
    template_fields: Sequence[str] = ("lake", "transaction")

    def act(self, context: Context) -> None:
        """Aborts the transaction unless it is committed.  Raises Unavailable, OutcomeUnknown; then the retention
        agent aborts it later."""
        from lake_core.errors import Conflict

        try:
            self.get_lake().transaction(self.transaction).abort()
        except Conflict:
            self.log.info("transaction %s is committed", self.transaction)
            return
        self.log.info("transaction %s is ended; nothing of it is visible", self.transaction)
