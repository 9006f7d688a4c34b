"""Loads files into a pool as one transaction, exactly once, however often the task is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_lake import given
from airflow_lake.operators.base import plain
from airflow_lake.operators.files import LakeFilesOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class LakeLoadOperator(LakeFilesOperator):
    """Loads `files` into a pool.

    The load runs on Spark; with `on_spark=False` in the task itself, for small files.  If something was
    committed, the task emits an event of the pool's asset (`lake_asset`); with `partitions`, one event for each
    of them.  With `partitions` the pool and the lake must not be templates, because Airflow must know the asset
    when it parses the file.
    """

    def __init__(self, *, on_spark: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.on_spark = given.fixed_flag(on_spark, "on_spark", who=self.task_id)
        if self.partitions is not None and self.has_template:
            raise ValueError(
                f"{self.task_id}: partitions need a pool, a lake and a branch that are no templates: Airflow must "
                "know the asset when it parses the file"
            )
        self.add_outlets(is_known=self.partitions is not None)

    def act(self, context: Context) -> dict[str, Any]:
        """Returns the result: version, transaction_id, records, objects, ..."""
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
        self.announce(result, self.partitions or (), context)
        self.effects = (self.done_effect(values, files=tuple(file.uri for file in files)),)
        self.log.info("%s", values)
        return values
