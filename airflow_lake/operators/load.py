"""Load files into a pool as one transaction, once however often the task is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_lake.assets import event_of, lake_alias, lake_asset
from airflow_lake.operators.base import plain
from airflow_lake.operators.files import LakeFilesOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class LakeLoadOperator(LakeFilesOperator):
    """Load `files` into a pool.

    On Spark; with `on_spark=False` in the task itself, for small files.  If something was committed, the task emits
    an event of the pool's asset (`lake_asset`).
    """

    def __init__(self, *, on_spark: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.on_spark = on_spark
        self.alias = lake_alias(self.lake)
        self.add_outlet(self.alias)

    def act(self, context: Context) -> dict[str, Any]:
        """What was loaded: version, transaction_id, records, objects, ..."""
        lake = self.get_lake()
        files, manner = self.source_files(lake), self.manner(context)
        if self.on_spark:
            result = self.load_on_spark(lake, files, title="load", **manner)
        else:
            branch = lake.pool(self.pool_name).branch(self.branch)
            result = branch.load([file.uri for file in files], **manner)
        self.warn_if_repeated(result)
        values = plain(result, pool=self.pool_name)
        if result.version is not None:
            asset = lake_asset(self.pool_name, lake=self.lake, branch=self.branch)
            context["outlet_events"][self.alias].add(asset, extra=event_of(values))
        self.effects = (self.done_effect(values, files=tuple(file.uri for file in files)),)
        self.log.info("%s", values)
        return values
