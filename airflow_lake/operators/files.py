"""What the operators that read files have in common: the files, the reading options, and the commit under one
token."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lake import allowed, given
from airflow_lake.assets import (
    PoolEvent,
    check_partitions,
    is_other_pool,
    is_pool,
    lake_alias,
    lake_asset,
    withhold,
)
from airflow_lake.operators.base import LakeOperator
from airflow_lake.runs import conf_of
from lake_core.phrases import choices
from log_lake.agents.roster import ParameterKind
from log_lake.loading.places import sources

if TYPE_CHECKING:
    from airflow.sdk import Context

    from log_lake.lake import Lake
    from log_lake.lake.results import LoadResult
    from log_lake.loading.source_files import SourceFile

FAIL, SKIP, EMPTY = "fail", "skip", "empty"


class LakeFilesOperator(LakeOperator):
    """An action that reads `files` (paths, globs, folders); `format` and `options` as for `lake load`.

    `missing`: what the task does if no name has a file, or if the list of names is empty: `fail`, or `skip`.
    With `skip`, a name without a file is also ignored if others have files.
    """

    works_in_transaction: ClassVar[bool] = True
    ways_of_missing: ClassVar[tuple[str, ...]] = (FAIL, SKIP)
    template_fields: Sequence[str] = (
        *LakeOperator.template_fields,
        "files",
        "token",
        "message",
        "options",
        "partitions",
    )

    def __init__(
        self,
        *,
        files: Sequence[str] | str | given.LeftOut,
        format: str = "auto",
        options: Mapping[str, str] | None = None,
        token: str | None = None,
        message: str = "",
        missing: str = FAIL,
        partitions: Sequence[str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if missing not in self.ways_of_missing:
            raise ValueError(
                f"{self.task_id}: missing must be {choices(self.ways_of_missing)} (got {missing!r})"
            )
        self.missing = missing
        self.leaves_files_out = isinstance(files, given.LeftOut)
        self.files: Any = () if isinstance(files, given.LeftOut) else files
        self.asked_files = self.files
        self.format = format
        self.options = options
        self.asked |= self.asked_token(token)
        self.asked_names |= {"options": options}
        self.token = token
        self.message = message
        self.partitions = partitions
        self.has_partitions = partitions is not None
        if self.has_partitions and self.transaction:
            raise ValueError(
                f"{self.task_id}: partitions have no meaning in a transaction: its commit emits the events, one "
                "for each pool"
            )
        self.alias = lake_alias(self.lake)

    def add_outlets(self, *, is_known: bool) -> None:
        """Declares which events the task emits: those of its pool's asset if the pool `is_known` now, otherwise
        those of an alias. In a transaction it emits none, because the transaction's commit does."""
        if self.transaction:
            return
        is_known = is_known and all(isinstance(one, str) for one in (self.pool_name, self.lake, self.branch))
        if not (is_known and self._named_asset()):
            self.add_outlet(self._asset() if is_known else self.alias)

    def _asset(self) -> Any:
        return lake_asset(self.pool_name, lake=self.lake, branch=self.branch)

    def _named_asset(self) -> Any:
        """Returns the asset of the pool, if the task names it as an outlet, itself or in the DAG; otherwise
        None."""
        uri = self._asset().uri
        return next((outlet for outlet in self.outlets or () if getattr(outlet, "uri", None) == uri), None)

    @property
    def has_template(self) -> bool:
        """Whether the name of the pool is a template."""
        return given.is_template((self.pool_name, self.lake, self.branch))

    def take(self) -> None:
        """Reads the rendered parameters, also the files, their options, the token, and the partitions; a single
        text becomes a list of one."""
        super().take()
        task = self.task_id
        self.files = given.texts(self.files, "files", task=task)
        self.check_files_named(self.files)
        self.message = given.text_or_empty(self.message, "message", task=task)
        if self.has_partitions:
            self.partitions = given.filled_in(self.partitions, "partitions", ParameterKind.TEXTS, task=task)
            check_partitions(self.partitions, task=task)

    def source_files(self, lake: Lake, context: Context) -> list[SourceFile] | LoadResult:
        """Returns the existing files, as `files_there` does.  If the files were moved away, returns the result
        that an earlier try committed, if there is one."""
        from airflow.sdk.exceptions import AirflowSkipException

        from lake_core.errors import NotFound

        self.check_files(lake, context)
        try:
            return self.files_there(lake)
        except (NotFound, AirflowSkipException):
            if (first := self.committed(lake, context)) is None:
                raise
            return first

    def check_files(self, lake: Lake, context: Context) -> None:
        """Raises InvalidInput for files that the run names and may not name (`allowed`)."""
        if not allowed.is_given(self.asked_files, conf=conf_of(context)):
            return
        of_pool = sources(lake.pool(self.pool_name).settings)
        places = of_pool | allowed.of_templates(self.asked_files) | self.defaults
        allowed.check_files(self.files, task=self.task_id, places=places, environ=os.environ)

    def files_there(self, lake: Lake) -> list[SourceFile]:
        """Returns the existing files; empty if the DAG leaves the names out, or if files may be missing.

        Raises NotFound, InvalidInput, Unavailable, and AirflowSkipException if there is no file and `missing`
        is `skip`.
        """
        from airflow.sdk.exceptions import AirflowSkipException

        from lake_core.errors import NotFound
        from lake_core.store import address_of
        from log_lake.loading.sources import files_to_read

        if self.leaves_files_out and not self.files:
            return []
        if not self.files and self.missing == FAIL:
            raise NotFound(
                f"{self.task_id}: files is empty: there is nothing to read, and nothing was changed. If that may "
                f"be, say so: missing={choices(self.ways_of_missing[1:])}"
            )
        how = (lake.pool(self.pool_name).config.settings, self.options or {})
        access = address_of(lake.store)
        if self.missing == FAIL:
            return files_to_read(list(self.files), *how, access=access)
        by_uri: dict[str, SourceFile] = {}
        for name in self.files:
            try:
                by_uri |= {file.uri: file for file in files_to_read([name], *how, access=access)}
            except NotFound as error:
                self.log.info("%s", error)
        if not by_uri and self.missing == SKIP:
            raise AirflowSkipException(
                f"{self.pool_name}: there are no files, and the task says missing={SKIP!r}"
            )
        return [by_uri[uri] for uri in sorted(by_uri)]

    def committed(self, lake: Lake, context: Context) -> LoadResult | None:
        """Returns the result that an earlier try committed under the task's token, whatever kind of work that was;
        None if no try did.

        Used if no file exists: after a load the user may move the files away before the task is retried.
        """
        from log_lake.lake.results import LoadResult

        token = self.token_of(context, self.token)
        if not token:
            return None
        first = lake.pool(self.pool_name).branch(self.branch).begin_load(token=token, kinds=())
        return first if isinstance(first, LoadResult) else None

    def manner(self, context: Context) -> dict[str, Any]:
        """Returns how the files are read and committed, as arguments for `load` and `replace`."""
        return {
            "format": self.format,
            "options": self.options,
            "token": self.token_of(context, self.token),
            "message": self.message,
        }

    def announce(self, result: LoadResult, partitions: Sequence[str], context: Context) -> None:
        """Emits an event of the pool's asset, one for each partition; none if nothing was committed.

        If a DAG names assets of other pools of the lake, as for a mapped operator, this task emits none for
        them.
        """
        named = [outlet for outlet in self.outlets or () if is_pool(outlet)]
        if self.transaction:
            withhold(self, named)
            return
        event = PoolEvent.of(self.pool_name, result)
        if event is None:
            withhold(self, named)
            return
        asset, own = self._named_asset(), self._asset()
        withhold(self, [one for one in named if one != asset and is_other_pool(one, own)])
        if asset is None:
            context["outlet_events"][self.alias].add(self._asset(), extra=event.extra)
            return
        events = context["outlet_events"][asset]
        events.extra = event.extra
        if partitions:
            events.add_partitions(list(partitions))

    def load_on_spark(self, lake: Lake, files: list[SourceFile], *, title: str, **more: Any) -> Any:
        """Loads the files by Spark as one transaction, and returns the result; `more` are further arguments of
        `load_files`."""
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
