"""What all operators have in common: the lake by name, the Spark that works on it, and one commit for each task.

A task that is retried must not commit twice.  So a load, a replace and a delete commit under a token made of
the task's DAG, run and id; a mapped task's token also includes what it works on.  If the task is cleared, it
repeats nothing either. Mapped tasks of a run that work on the same thing commit once.  Pass `token=""` to
commit again each time.

If a retry cannot help (bad input, a missing pool, damage), the task fails at once.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator

from airflow_lake import allowed, given
from airflow_lake.defaults import NO_RETRY
from airflow_lake.effects import Effect, done
from airflow_lake.interval import Interval, refuse_given
from airflow_lake.lineage import Tells
from airflow_lake.links import LINKS
from airflow_lake.reach import lake_name, open_lake, open_spark
from airflow_lake.rendering import KeepsTexts
from airflow_lake.runs import conf_of, defaults_of
from airflow_lake.tries import sentence_last, tell_of_tries
from lake_core.naming import MAIN

if TYPE_CHECKING:
    from airflow.sdk import Context, RetryPolicy

    from log_lake.lake import Lake
    from spark_apps.session import OpenSpark

ONCE = "airflow:{dag}:{run}:{task}:{index}"
"""The token of a task, unless the operator is given one."""
IDENTITY = ("pool_name", "branch", "files", "format", "options", "begin", "end", "low", "high", "where")
"""The arguments that distinguish the mapped tasks of a run (`LakeOperator.identity`).  The map index cannot: if the
list that a task is mapped over changes, the same index stands for another value."""
BOUNDS = ("begin", "end", "low", "high", "where")
"""The arguments that decide which records are replaced or deleted."""
FIGURES = ("version", "records", "objects", "size")
"""The figures that results of operators and their effects share."""


class LakeOperator(KeepsTexts, Tells, BaseOperator):
    """An action on one pool of one lake.  (Airflow's own `pool` of a task is another thing: slots of workers.)

    `lake`: the id of a connection of type lake, or a URI; empty: the variable LAKE of the worker, then
    lake_default. `spark`: the id of a connection of type spark_connect or spark; empty: what the lake's
    connection names.  `spark_conf`: settings of that Spark, such as resources.  `transaction`: the id of a
    transaction over pools in which the task works (`groups.LakeTransaction`); `branch` is the one that its commit
    changes.
    """

    template_fields: Sequence[str] = ("lake", "pool_name", "branch", "spark", "spark_conf", "transaction")
    works_in_transaction: ClassVar[bool] = False
    identity: ClassVar[tuple[str, ...]] = IDENTITY
    agent: ClassVar[str] = ""
    """The agent whose work the operator does; "" if its transactions show what it did, as those of loads do."""
    outlets: list[Any]
    ui_color: ClassVar[str] = "#d9ecf2"
    operator_extra_links = LINKS

    def __init__(
        self,
        *,
        pool_name: str,
        lake: str = "",
        branch: str = MAIN,
        spark: str = "",
        spark_conf: Mapping[str, str] | None = None,
        transaction: str = "",
        retry_policy: RetryPolicy | None = NO_RETRY,  # as a default, so that a DAG's own comes before it
        **kwargs: Any,
    ) -> None:
        super().__init__(retry_policy=retry_policy, **kwargs)
        self.pool_name = pool_name
        self.lake = lake
        self.branch = branch
        self.spark = spark
        self.spark_conf = spark_conf
        if transaction and not self.works_in_transaction:
            raise ValueError(
                f"{self.task_id}: transaction has no meaning here: this work is of no transaction"
            )
        self.transaction = transaction
        self.effects: tuple[Effect, ...] = ()
        self.asked: dict[str, Any] = {}  # what the DAG says, before templates are filled in
        self.asked_names: dict[str, Any] = {"spark_conf": spark_conf}  # the same, of texts by name
        self.asked_or_default: dict[str, Any] = {  # the same; "" has a meaning
            "lake": lake,
            "spark": spark,
            "transaction": transaction,
        }
        self.defaults = defaults_of(self)

    def execute(self, context: Context) -> Any:
        """Checks the parameters in their final form, and does the work.  Raises InvalidInput, and what the work
        raises.

        If the operator does an agent's work, that is recorded as a job of the agent.
        """
        tell_of_tries(context.get("ti"))
        return sentence_last(partial(self._execute, context))

    def _execute(self, context: Context) -> Any:
        self.take()
        self.check_given(context)
        self.join()
        if not self.agent:
            return self.act(context)
        from log_lake.agents.jobs import recorded

        lake, of_pool = self.get_lake(), {"pool_name": self.pool_name, "branch": self.branch}
        with recorded(lake, agent=self.agent, **of_pool) as job:
            result = self.act(context)
            job.update(result)
        return result

    def take(self) -> None:
        """Reads the rendered parameters.  Raises InvalidInput before anything is done."""
        task = self.task_id
        for name, asked in self.asked_names.items():
            setattr(self, name, given.texts_by_name(getattr(self, name), name, task=task, asked=asked))
        self.branch = given.text(self.branch, "branch", task=task)
        self.pool_name = given.text(self.pool_name, "pool_name", task=task)
        self.take_asked()

    def take_asked(self) -> None:
        """Reads the parameters that the DAG may leave out (`asked`); a parameter that it sets must not be
        empty."""
        for name, asked in self.asked_or_default.items():
            setattr(
                self, name, given.text_or_empty(getattr(self, name), name, task=self.task_id, asked=asked)
            )
        for name, asked in self.asked.items():
            setattr(
                self, name, given.text_if_given(getattr(self, name), name, task=self.task_id, asked=asked)
            )
        self.check_condition(getattr(self, "where", None))

    def check_given(self, context: Context) -> None:
        """Raises InvalidInput for a lake that the run names and may not name (`allowed`)."""
        allowed.check_lake_of_run(
            self.lake,
            asked=self.asked_or_default["lake"],
            defaults=self.defaults,
            conf=conf_of(context),
            task=self.task_id,
            environ=os.environ,
        )

    def join(self) -> None:
        """Makes the task work on the branch of the transaction, if it is in one.

        Raises NotFound, Conflict (the transaction was ended), Unavailable.
        """
        if self.transaction and self.pool_name:
            lake = self.get_lake()
            self.branch = lake.transaction(self.transaction).pool(self.pool_name, into=self.branch).name

    def act(self, context: Context) -> Any:
        """Does the work of the task, and returns a result that other tasks can use."""
        raise NotImplementedError

    def effect(self, **what: Any) -> Effect:
        """Returns the planned effect of the task on its pool."""
        return Effect(lake=self.lake_name, pool=self.pool_name, branch=self.branch, **what)

    def done_effect(self, values: Mapping[str, Any], **what: Any) -> Effect:
        """Returns the finished effect of the task on its pool; `values` are those of its result."""
        return done(self.effect(**what), **{name: values.get(name) for name in FIGURES})

    def planned_effects(self) -> Iterable[Effect]:
        """Returns the planned effect on the task's pool, if the task names a pool."""
        return [self.effect()] if self.pool_name else []

    @property
    def lake_name(self) -> str:
        """The name of the lake on which the task works, known when the task runs."""
        return lake_name(self.lake)

    def get_lake(self) -> Lake:
        """Opens and returns the lake; its transactions carry the DAG, run, task and try."""
        return open_lake(self.lake_name)

    def get_spark(self) -> OpenSpark:
        """Returns a function that opens a Spark session with a given name for a `with` block."""
        return open_spark(self.lake_name, self.spark, conf=self.spark_conf)

    def add_outlet(self, outlet: Any) -> None:
        """Adds an asset, or an alias of assets, whose events this task may emit."""
        self.outlets = [*(self.outlets or ()), outlet]

    def warn_if_repeated(self, result: Any) -> None:
        """Logs if an earlier try, or an earlier run with the same ids, committed under the task's token."""
        if result.repeated:
            self.log.warning(
                "%s: nothing was committed now: version %s used the token of this task. If it is to work on other "
                "data, start a new run, or pass token=''",
                self.pool_name,
                result.version,
            )

    def refuse_given_interval(
        self, context: Context, *, by_hand: bool, interval: Interval | None = None, also: Any = None
    ) -> None:
        """Raises InvalidInput if bounds come from an interval that the run did not ask for; `also` is another text
        of the DAG file, or a list of texts, that decides what is replaced."""
        asked = (also, *(self.asked.get(name) for name in BOUNDS))
        run = context.get("dag_run")
        refuse_given(run, asked=asked, interval=interval, by_hand=by_hand, task=self.task_id)

    @staticmethod
    def asked_token(token: str | None) -> dict[str, str | None]:
        """Returns the token as one of the parameters `asked`.  It is left out if the DAG file says "", to commit
        again each time."""
        return {} if token == "" else {"token": token}

    def token_of(self, context: Context, token: str | None) -> str:
        """Returns the token that the user gave; if that is None, the task's own token."""
        if token is not None:
            return token
        task = context["ti"]
        index: int | str = getattr(task, "map_index", -1)
        if index != -1:
            values = [getattr(self, name, None) for name in self.identity]
            index = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]
        return ONCE.format(dag=task.dag_id, run=task.run_id, task=task.task_id, index=index)


def plain(result: Any, **also: Any) -> dict[str, Any]:
    """Returns the values of a result in the form in which they are passed to other tasks; `also` are further
    values."""
    values = dict(result) if isinstance(result, Mapping) else dict(vars(result))
    return {**also, **{name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}}
