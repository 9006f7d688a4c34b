"""Changes a pool, or makes one, by a statement of SQL, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lake import given
from airflow_lake.effects import Effect
from airflow_lake.operators.base import LakeOperator, plain

if TYPE_CHECKING:
    from airflow.sdk import Context


UNREAD = {
    "branch": 'the statement names the branch (UPDATE "flights@dev")',
    **dict.fromkeys(("spark", "spark_conf"), "a statement needs no Spark"),
}
"""Arguments of other operators that this one does not read, and why."""


class LakeStatementOperator(LakeOperator):
    """Runs one INSERT, UPDATE, DELETE, TRUNCATE, MERGE or CREATE TABLE ... AS, as `lake query` does.

    The statement is one transaction.  A retry of the task commits nothing twice.

    In a run that was not started by a schedule, a backfill or an asset, an UPDATE, DELETE or MERGE whose templates
    read the run's interval is refused unless `by_hand=True`.

    With `transaction` it works in that transaction over pools; UPDATE, MERGE and CREATE cannot
    (docs/transactions.md).
    """

    works_in_transaction: ClassVar[bool] = True
    template_fields: Sequence[str] = ("lake", "sql", "message", "token", "transaction")
    template_ext: Sequence[str] = (".sql",)
    identity: ClassVar[tuple[str, ...]] = ("sql",)

    def __init__(
        self, *, sql: str, message: str = "", token: str | None = None, by_hand: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(pool_name="", **kwargs)
        given.refuse_unread(kwargs, UNREAD, who=self.task_id)
        self.sql, self.message, self.token = sql, message, token
        self.asked |= self.asked_token(token)
        self.asked_sql = sql
        self.by_hand = given.fixed_flag(by_hand, "by_hand", who=self.task_id)

    def prepare_template(self) -> None:
        """Keeps the statement as the DAG file, or its `.sql` file, has it; Airflow calls this when it has read such
        a file."""
        self.asked_sql = self.sql

    def take(self) -> None:
        """Reads the statement after its templates are rendered; it names the pool."""
        self.take_asked()
        self.sql = given.text(self.sql, "sql", task=self.task_id)
        self.message = given.text_or_empty(self.message, "message", task=self.task_id)

    def planned_effects(self) -> Iterable[Effect]:
        """Returns the pool that the statement changes as the planned effect, if the statement can be parsed."""
        from lake_core.errors import InvalidInput
        from log_lake.sql_writes.statement import parsed

        try:
            target = parsed(self.sql).target
        except InvalidInput:  # a template, or a mistake that the task will tell
            return []
        return [Effect(lake=self.lake_name, pool=target.pool, branch=target.branch)]

    def act(self, context: Context) -> dict[str, Any]:
        """Returns the result: `pool`, `branch`, `verb`, `version` (None if no record matched), `records` and so
        on."""
        from log_lake.sql_writes import execute
        from log_lake.sql_writes.create_statement import Create
        from log_lake.sql_writes.statement import Insert, parsed

        if not isinstance(parsed(self.sql), Insert | Create):  # these change no record of the interval
            asked = self.read_files.get(self.asked_sql, self.asked_sql)
            self.refuse_given_interval(context, by_hand=self.by_hand, also=asked)
        token = self.token_of(context, self.token)
        result = execute(
            self.get_lake(), self.sql, token=token, message=self.message, transaction=self.transaction
        )
        self.warn_if_repeated(result)
        done = Effect(
            lake=self.lake_name,
            pool=result.pool,
            branch=result.branch,
            is_done=True,
            version=result.version,
            records=result.records,
        )
        self.effects = (done,)
        values = plain(result)
        self.log.info("%s", values)
        return values
