"""Load files into a pool as one transaction, once however often the task is tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_lake import given
from airflow_lake.assets import event_of, lake_alias, lake_asset
from airflow_lake.operators.base import plain
from airflow_lake.operators.files import LakeFilesOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class LakeLoadOperator(LakeFilesOperator):
    """Load `files` into a pool.

    On Spark; with `on_spark=False` in the task itself, for small files.  If something was committed, the task emits
    an event of the pool's asset (`lake_asset`); with `partitions`, one for each of them.  The pool and the lake
    must not be templates then, because Airflow must know the asset when it parses the file.
    """

    template_fields: Sequence[str] = (*LakeFilesOperator.template_fields, "partitions")

    def __init__(
        self, *, on_spark: bool = True, partitions: Sequence[str] | str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.on_spark = on_spark
        self.partitions = partitions
        if partitions is not None and given.is_template((self.pool_name, self.lake, self.branch)):
            raise ValueError(
                f"{self.task_id}: partitions need a pool, a lake and a branch that are no templates: Airflow must "
                "know the asset when it parses the file"
            )
        self.asset = None if partitions is None else self._asset()
        self.alias = lake_alias(self.lake)
        self.add_outlet(self.alias if self.asset is None else self.asset)

    def _asset(self) -> Any:
        return lake_asset(self.pool_name, lake=self.lake, branch=self.branch)

    def take(self) -> None:
        """Also the partitions; one text is one of them."""
        super().take()
        self.partitions = self.taken_partitions(self.partitions)

    def act(self, context: Context) -> dict[str, Any]:
        """What was loaded: version, transaction_id, records, objects, ..."""
        lake = self.get_lake()
        files, manner = self.source_files(lake, context), self.manner(context)
        if not isinstance(files, list):
            result, files = files, []
        elif self.on_spark:
            result = self.load_on_spark(lake, files, title="load", **manner)
        else:
            branch = lake.pool(self.pool_name).branch(self.branch)
            result = branch.load([file.uri for file in files], **manner)
        self.warn_if_repeated(result)
        values = plain(result, pool=self.pool_name)
        if self.asset is not None:
            self.announce(values, self.asset, self.partitions or (), context)
        elif result.version is not None:
            context["outlet_events"][self.alias].add(self._asset(), extra=event_of(values))
        self.effects = (self.done_effect(values, files=tuple(file.uri for file in files)),)
        self.log.info("%s", values)
        return values
