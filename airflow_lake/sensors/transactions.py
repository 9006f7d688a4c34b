"""A sensor that waits, without a worker, until one of its pools has a new transaction."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue

from airflow_lake import allowed, given
from airflow_lake.defaults import NO_RETRY
from airflow_lake.reach import lake_name, open_lake
from airflow_lake.rendering import KeepsTexts
from airflow_lake.runs import conf_of, defaults_of
from airflow_lake.triggers.transactions import PAUSE, REST, TransactionTrigger, check_pause, event_of_news
from lake_core.naming import MAIN

if TYPE_CHECKING:
    from airflow.sdk import Context, RetryPolicy

    from log_lake.lake.watch import WatchPosition

BEGUN = "lake_begun"
"""The name under which Airflow stores, with the task, the position at which its first try began: a transaction
that is committed between two tries is new too."""


class LakeTransactionSensor(KeepsTexts, BaseSensorOperator):
    """Waits for a transaction on the branch of one of the pools, later than version `after` of each.

    Without `after`, it waits for a transaction later than the versions when its first try starts.  The result
    is the event: pool, version and others.  The task is deferred, so it needs Airflow's triggerer, and no
    worker while it waits.  It waits at least ten seconds (`triggers.transactions.REST`).  With
    `deferrable=False` it waits in the worker, as other sensors of Airflow do (`mode`, `poke_interval`).
    """

    template_fields: Sequence[str] = ("lake", "pools", "branch", "after")
    ui_color = "#d9ecf2"

    def __init__(
        self,
        *,
        pools: Sequence[str],
        lake: str = "",
        branch: str = MAIN,
        after: int | str | None = None,
        maintenance: bool = False,
        pause: float = PAUSE,
        deferrable: bool = True,
        retry_policy: RetryPolicy | None = NO_RETRY,  # as a default, so that a DAG's own comes before it
        **kwargs: Any,
    ) -> None:
        super().__init__(retry_policy=retry_policy, **kwargs)
        self.pools = pools
        self.asked = {"lake": lake, "after": after}  # what the DAG says, before templates are filled in
        self.defaults = defaults_of(self)
        self.lake = lake
        self.branch = branch
        self.after = after
        self.maintenance = given.fixed_flag(maintenance, "maintenance", who=self.task_id)
        check_pause(pause, who=self.task_id)
        self.pause = pause
        self.deferrable = given.fixed_flag(deferrable, "deferrable", who=self.task_id)
        self._name = ""
        self._positions: dict[str, WatchPosition] = {}

    def execute(self, context: Context) -> Any:
        """Reads the pools' current positions, and waits: in the triggerer if `deferrable`, otherwise in the
        worker."""
        name, positions = self._name, self._positions = self._begun(context)
        if not self.deferrable:
            return super().execute(context)
        self.defer(
            trigger=TransactionTrigger(
                pools=list(positions),
                lake=name,
                branch=self.branch,
                after={pool: list(at) for pool, at in positions.items()},
                maintenance=self.maintenance,
                pause=self.pause,
                rest=REST,
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout) if self.timeout else None,
        )
        return None

    def poke(self, context: Context) -> PokeReturnValue:
        """Whether one of the pools has a new transaction; False also if the store does not answer."""
        from lake_core.errors import Unavailable

        try:
            event = self._news()
        except Unavailable as error:
            self.log.warning("%s; looks again", error)
            event = None
        if event is None:
            return PokeReturnValue(is_done=False)
        return PokeReturnValue(is_done=True, xcom_value=self.execute_complete(context, event))

    def _news(self) -> dict[str, Any] | None:
        """Returns the event of the first pool with a new transaction; None if there is none.  Raises
        Unavailable."""
        from airflow_lake.triggers.interest import is_new
        from log_lake.lake.watch import Watcher, resume

        lake = open_lake(self._name)
        for pool, position in self._positions.items():
            purged, self._positions[pool] = resume(lake, pool, position)
            if purged:  # unseen
                return event_of_news(purged, lake=self._name, branch=self.branch)
        watcher = Watcher(lake)
        while True:  # bounded by the entries there are: a look reads some of each pool
            news, after = watcher.look(self._positions)
            fresh = [
                one
                for one in news
                if is_new(one, self._positions[one.pool], branch=self.branch, maintenance=self.maintenance)
            ]
            if fresh:
                first = [one for one in fresh if one.pool == fresh[0].pool]
                return event_of_news(first, lake=self._name, branch=self.branch)
            if after == self._positions:
                return None
            self._positions = after

    def _begun(self, context: Context) -> tuple[str, dict[str, WatchPosition]]:
        """Returns the name of the lake, and the positions after which a transaction is new.

        Raises InvalidInput, NotFound.
        """
        from lake_core.errors import InvalidInput
        from log_lake.lake.watch import WatchPosition, begin

        task = self.task_id
        pools = given.texts(self.pools, "pools", task=task)
        branch = given.text(self.branch, "branch", task=task)
        name = lake_name(given.text_or_empty(self.lake, "lake", task=task, asked=self.asked["lake"]))
        allowed.check_lake_of_run(
            name,
            asked=self.asked["lake"],
            defaults=self.defaults,
            conf=conf_of(context),
            task=task,
            environ=os.environ,
        )
        lake = open_lake(name)
        if not pools:
            raise InvalidInput(f"{task}: pools is empty; name at least one pool")
        for pool in pools:  # raises NotFound: a misspelt name would wait in vain
            lake.pool(pool).branch(branch, to_delete=True)
        self.branch = branch
        positions = begin(lake, pools)
        after = given.text_if_given(self.after, "after", task=task, asked=self.asked["after"])
        if after is not None:
            seen = _version(after)
            return name, {pool: at._replace(version=seen) for pool, at in positions.items()}
        if (kept := context.get("task_state_store")) is not None:
            where = [name, branch]  # the map index may have been another lake's, if the run was cleared
            begun = kept.get(BEGUN) or {}
            if begun.get("where") == where:
                positions |= {
                    pool: WatchPosition(*at) for pool, at in begun["at"].items() if pool in positions
                }
            kept.set(BEGUN, {"where": where, "at": {pool: list(at) for pool, at in positions.items()}})
        return name, positions

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the event of the trigger, and forgets the versions where the wait began.  So a task that is
        cleared after its success waits from the newest version."""
        kept = context.get("task_state_store")
        if kept is not None and kept.get(BEGUN) is not None:
            kept.delete(BEGUN)
        self.log.info("%s: version %s", event["pool"], event["version"])
        return dict(event)


def _version(after: str) -> int:
    """Returns the version as a number.  Raises InvalidInput."""
    from lake_core.errors import InvalidInput

    try:
        version = int(after)
    except ValueError:
        version = -1
    if version < 0:
        raise InvalidInput(f"after={after!r}: must be a version, as 12")
    return version
