"""What the operators that read files share: which files, how they are read, and the commit under one token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_lake import given
from airflow_lake.operators.base import LakeOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lake_core.lake import Lake
    from lake_core.records.source_files import SourceFile


class LakeFilesOperator(LakeOperator):
    """An action that reads `files` (paths, globs, folders); `format` and `options` as of `lake load`."""

    template_fields: Sequence[str] = (*LakeOperator.template_fields, "files", "token", "message", "options")

    def __init__(
        self,
        *,
        files: Sequence[str] | str,
        format: str = "auto",
        options: Mapping[str, str] | None = None,
        token: str | None = None,
        message: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.files = files
        self.format = format
        self.options = options
        self.asked |= self.asked_token(token)
        self.token = token
        self.message = message

    def take(self) -> None:
        """Also the files, and how they are read and committed."""
        super().take()
        task = self.task_id
        self.files = given.texts(self.files, "files", task=task)
        self.options = given.texts_by_name(self.options, "options", task=task)
        self.message = given.text_or_empty(self.message, "message", task=task)

    def source_files(self, lake: Lake) -> list[SourceFile]:
        """The files, each of them there; empty if none were named.  Raises NotFound, InvalidInput, Unavailable."""
        from lake_core.cli.reading import files_to_read
        from lake_core.store import address_of

        if not self.files:
            return []
        settings = lake.pool(self.pool_name).config.settings
        return files_to_read(list(self.files), settings, self.options or {}, access=address_of(lake.store))

    def manner(self, context: Context) -> dict[str, Any]:
        """How the files are read and committed, as arguments of `load` and `replace`."""
        return {
            "format": self.format,
            "options": self.options,
            "token": self.token_of(context, self.token),
            "message": self.message,
        }

    def load_on_spark(self, lake: Lake, files: list[SourceFile], *, title: str, **more: Any) -> Any:
        """The result of one load by Spark; `more` are arguments of `load_files`."""
        from spark_apps.load import load_files

        size = sum(file.size for file in files)
        with self.get_spark()(f"lake {title} {self.pool_name}", size=size) as spark:
            return load_files(
                spark,
                lake,
                pool_name=self.pool_name,
                files=files,
                branch=self.branch,
                consume=False,
                **more,
            )
