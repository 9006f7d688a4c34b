"""Load files into a pool as one transaction, once however often the task is tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_lake.assets import event_of, lake_alias, lake_asset
from airflow_lake.operators.base import LakeOperator, plain

if TYPE_CHECKING:
    from airflow.sdk import Context


class LakeLoadOperator(LakeOperator):
    """Load `files` (paths, globs, folders) into a pool.

    `format` and `options` as of `lake load`.  On Spark; with `on_spark=False` in the task itself, for small
    files.  If something was committed, the task emits an event of the pool's asset (`lake_asset`).
    """

    template_fields: Sequence[str] = (*LakeOperator.template_fields, "files", "token", "message", "options")

    def __init__(
        self,
        *,
        files: Sequence[str] | str,
        format: str = "auto",
        options: Mapping[str, str] | None = None,
        token: str | None = None,
        message: str = "",
        on_spark: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.files = files
        self.format = format
        self.options = options
        self.token = token
        self.message = message
        self.on_spark = on_spark
        self.alias = lake_alias(self.lake)
        self.add_outlet(self.alias)

    def execute(self, context: Context) -> dict[str, Any]:
        """What was loaded: version, transaction_id, records, objects, ..."""
        from lake_core.cli.reading import files_to_read
        from spark_apps.load import load_files

        lake = self.get_lake()
        pool = lake.pool(self.pool_name)
        names = [self.files] if isinstance(self.files, str) else list(self.files)
        files = files_to_read(names, pool.config.settings, self.options or {})
        how: dict[str, Any] = {
            "format": self.format,
            "options": self.options,
            "token": self.token_of(context, self.token),
            "message": self.message,
        }
        if self.on_spark:
            with self.get_spark()(f"lake load {self.pool_name}") as spark:
                result = load_files(
                    spark,
                    lake,
                    pool_name=self.pool_name,
                    files=files,
                    branch=self.branch,
                    consume=False,
                    **how,
                )
        else:
            result = pool.branch(self.branch).load([file.uri for file in files], **how)
        values = plain(result, pool=self.pool_name)
        if result.version is not None:
            asset = lake_asset(self.pool_name, lake=self.lake, branch=self.branch)
            context["outlet_events"][self.alias].add(asset, extra=event_of(values))
        self.log.info("%s", values)
        return values
