"""Queries a lake by SQL, for a check or a branch of a DAG."""

from __future__ import annotations

import decimal
import json
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lake import given
from airflow_lake.effects import Effect
from airflow_lake.operators.base import LakeOperator
from lake_core.naming import MAIN
from log_lake.agents.roster import ParameterKind

if TYPE_CHECKING:
    from airflow.sdk import Context

    from log_lake.lake.pool import Pool
    from log_lake.lake.view import View

MAX_ROWS = 100
MAX_BYTES = 1 << 20
"""The most bytes of an answer as JSON: Airflow stores it in its database."""


UNREAD = {
    "branch": 'the statement names pools and branches ("flights@dev")',
    **dict.fromkeys(("spark", "spark_conf"), "a query needs no Spark"),
}
"""Arguments of other operators that this one does not read, and why."""


SHOWN = 2_000
"""Characters of an answer in the log and in errors."""


class LakeQueryOperator(LakeOperator):
    """Runs one SELECT over pools, as `lake query` does; the result is a list of rows as plain values.

    Airflow stores the values that tasks pass to each other.  So an answer of more than `max_rows` rows, or of
    more than `MAX_BYTES`, fails the task: aggregate, or add LIMIT.  With `must_hold=True` the task fails unless
    the answer is one row and its first value is true, or a number other than 0 and NaN.  With `transaction` it
    sees the writes of that transaction.
    """

    works_in_transaction: ClassVar[bool] = True
    template_fields: Sequence[str] = ("lake", "sql", "transaction")
    template_ext: Sequence[str] = (".sql",)

    def __init__(self, *, sql: str, max_rows: int = MAX_ROWS, must_hold: bool = False, **kwargs: Any) -> None:
        super().__init__(pool_name="", **kwargs)
        given.refuse_unread(kwargs, UNREAD, who=self.task_id)
        self.sql = sql
        self.max_rows = given.declared(
            max_rows, "max_rows", ParameterKind.COUNT, who=self.task_id, fixed=True
        )
        self.must_hold = given.fixed_flag(must_hold, "must_hold", who=self.task_id)

    def take(self) -> None:
        """Reads the statement after its templates are rendered; it names the pools."""
        self.take_asked()
        self.sql = given.text(self.sql, "sql", task=self.task_id)

    def planned_effects(self) -> Iterable[Effect]:
        """Returns the pools that the statement reads as planned effects, as far as the statement can be
        parsed."""
        from log_lake.system_tables.statement import pools_read

        return [
            Effect(lake=self.lake_name, pool=pool, branch=revision or MAIN, reads=True, writes=False)
            for pool, revision in pools_read(self.sql)
        ]

    def _note(self, pool: Pool, view: View) -> None:
        """Records which pool is read, at which version."""
        read = Effect(
            lake=self.lake_name,
            pool=pool.name,
            branch=view.branch,
            reads=True,
            writes=False,
            is_done=True,
            version=view.version,
        )
        self.effects = (*self.effects, read)

    def act(self, context: Context) -> list[dict[str, Any]]:
        """Returns the rows, by column name; times and bytes are texts, as `lake query` prints them.

        So is a decimal with more digits than a float keeps: it would be another number, as the key of a delete too.
        """
        import pyarrow as pa

        from lake_core.errors import InvalidInput
        from log_lake.columns.json_text import json_lines
        from log_lake.system_tables.sql import query

        rows: list[dict[str, Any]] = []
        size, first = 0, None
        with query(self.get_lake(), self.sql, reads=self._note, transaction=self.transaction) as reader:
            names = reader.schema.names
            for batch in reader:
                if len(rows) + batch.num_rows > self.max_rows:
                    raise InvalidInput(
                        f"{self.task_id}: the answer has more than max_rows={self.max_rows:,} rows; aggregate, or "
                        "add LIMIT to the query"
                    )
                if batch.num_rows and not rows:
                    first = batch.column(0)[0].as_py()
                lines = json_lines(pa.Table.from_batches([batch])).to_pylist()
                size += sum(len(line.encode()) for line in lines)
                if size > MAX_BYTES:
                    raise InvalidInput(
                        f"{self.task_id}: the answer has more than {MAX_BYTES:,} bytes as JSON; select less"
                    )
                rows += [dict.fromkeys(names) | json.loads(line, parse_float=_number) for line in lines]
        shown = textwrap.shorten(str(rows[:10]), SHOWN, placeholder=" ...")
        self.log.info("%d rows: %s", len(rows), shown)
        if self.must_hold and not (len(rows) == 1 and _holds(first)):
            raise InvalidInput(f"{self.task_id}: does not hold: {self.sql.strip()}: the answer is {shown}")
        return rows


def _number(text: str) -> float | str:
    """Returns the number that a text spells; the text, if no float is that number."""
    number = float(text)
    return number if decimal.Decimal(repr(number)) == decimal.Decimal(text) else text


def _holds(value: object) -> bool:
    """Whether a value of the answer is true, or a number other than 0 and NaN."""
    return isinstance(value, bool | int | float | decimal.Decimal) and bool(value) and not math.isnan(value)
