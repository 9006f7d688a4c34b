"""What dlt's loader calls: a client of one schema and one dataset.

dlt makes a client for each step and each job.  Errors of the lake become errors of dlt: transient if the same call
may succeed later, otherwise terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

from dlt.common.destination import DestinationCapabilitiesContext
from dlt.common.destination.client import (
    FollowupJobRequest,
    JobClientBase,
    LoadJob,
    StateInfo,
    StorageSchemaInfo,
    WithStateSync,
)
from dlt.common.destination.exceptions import (
    DestinationTerminalException,
    DestinationTransientException,
    DestinationUndefinedEntity,
)
from dlt.common.destination.typing import PreparedTableSchema
from dlt.common.schema import Schema, TSchemaTables
from dlt.common.schema.utils import get_nested_tables, get_root_table, has_table_seen_data
from dlt.common.storages.load_package import LoadJobInfo, ParsedLoadJobFileName
from dlt.destinations.job_impl import ReferenceFollowupJobRequest
from dlt.destinations.utils import verify_schema_merge_disposition, verify_unsupported_merge_options

from lake_core.errors import LakeError, NotFound
from log_lake.dlt.chain import ChainJob, ChainLoad, FileJob, TablePart, check_pool, files_of, job_request
from log_lake.dlt.configuration import LakeConfiguration
from log_lake.dlt.dataset import DatasetPools
from log_lake.dlt.own_pools import OwnPools
from log_lake.dlt.tables import APPEND, PipelineTable, PoolShape, check_merge, shape_of, table_of


@contextmanager
def as_errors_of_dlt() -> Iterator[None]:
    """Returns a context that turns an error of the lake into one of dlt: transient if the same call may succeed
    later, otherwise terminal."""
    try:
        yield
    except LakeError as error:
        kind = DestinationTransientException if error.may_pass else DestinationTerminalException
        raise kind(str(error)) from error


class LakeClient(JobClientBase, WithStateSync):
    """The client by which dlt's loader works on a lake, for one schema and one dataset."""

    config: LakeConfiguration

    def __init__(
        self, schema: Schema, config: LakeConfiguration, capabilities: DestinationCapabilitiesContext
    ) -> None:
        super().__init__(schema, config, capabilities)
        name = config.normalize_dataset_name(schema) or ""
        with as_errors_of_dlt():
            self.dataset = DatasetPools(config.uri, name, config.separator)
        self.own = OwnPools(self.dataset, schema)

    def __enter__(self) -> LakeClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    # --- storage

    def initialize_storage(self, truncate_tables: Iterable[str] | None = None) -> None:
        """Makes the lake if there is none; deletes all records of the tables to truncate."""
        with as_errors_of_dlt():
            self.dataset.make_lake()
            for table in sorted(truncate_tables or ()):
                if (pool := self.dataset.pool(table)) is not None:
                    pool.branch().delete(reason="dlt: truncate")

    def is_storage_initialized(self) -> bool:
        """Whether the dataset has the pool for the versions of schemas, which is made before all other
        pools."""
        with as_errors_of_dlt():
            return self.dataset.pool(self.schema.version_table_name) is not None

    def drop_storage(self) -> None:
        """Drops all pools of the dataset.  If the dataset has no name, drops the pools of the schema's
        tables."""
        with as_errors_of_dlt():
            try:
                tables = self.dataset.tables() if self.dataset.prefix else list(self.schema.tables)
            except NotFound:
                return
            for table in tables:
                self.dataset.drop(table)

    def drop_tables(self, *tables: str, delete_schema: bool = True) -> None:
        """Drops the pools of tables; with `delete_schema` all versions of the schema are forgotten."""
        with as_errors_of_dlt():
            for table in tables:
                self.dataset.drop(table)
            if delete_schema:
                self.own.forget_schema()

    # --- schema

    def verify_schema(
        self,
        only_tables: Iterable[str] | None = None,
        new_jobs: Iterable[ParsedLoadJobFileName] | None = None,
    ) -> list[PreparedTableSchema]:
        """Returns the tables to load.  Raises dlt's errors for tables that pools cannot have."""
        prepared = super().verify_schema(only_tables, new_jobs)
        wrong = verify_schema_merge_disposition(self.schema, prepared, self.capabilities)
        unsupported = verify_unsupported_merge_options(
            self.schema,
            prepared,
            self.capabilities,
            self.config.destination_type,
            ("skip_unchanged_rows", "source_filter", "destination_scope"),
        )
        for error in (*wrong, *unsupported):
            raise error
        with as_errors_of_dlt():
            for table in map(self._table, prepared):
                if self.own.shape(table.name) is None:
                    check_merge(table)
                    self._shape(table)
        return prepared

    def update_stored_schema(
        self,
        only_tables: Iterable[str] | None = None,
        expected_update: TSchemaTables | None = None,
        force: bool = False,
    ) -> TSchemaTables | None:
        """Makes the pools that tables lack, and stores the schema if it is new.

        Raises DestinationTerminalException if a pool that exists already cannot take the records of its table.
        """
        applied = super().update_stored_schema(only_tables, expected_update, force)
        with as_errors_of_dlt():
            for root in {str(get_root_table(self.schema.tables, name)["name"]) for name in only_tables or ()}:
                self._check_pools(root)
            for name in self.dataset.lacking(only_tables or self.schema.tables):
                self.dataset.made(name, self._shape(self._table(self.prepare_load_table(name))))
            if self.own.schema_of_hash(self.schema.stored_version_hash) is None:
                self.own.note_schema()
        return applied

    def should_truncate_table_before_load(self, table_name: str) -> bool:
        """Whether dlt must empty the table before a load; always False, because a replace deletes the old records
        in the transaction that adds the new ones."""
        return False

    # --- load

    def create_load_job(
        self, table: PreparedTableSchema, file_path: str, load_id: str, restore: bool = False
    ) -> LoadJob:
        """Returns the job for a file: one that loads a chain, if the file names the files of a chain.  For a file
        of records it returns a job that does nothing, because the chain's job loads that file."""
        if ReferenceFollowupJobRequest.is_reference_job(file_path):
            return ChainJob(file_path)
        return FileJob(file_path)

    def create_table_chain_completed_followup_jobs(
        self,
        table_chain: Sequence[PreparedTableSchema],
        completed_table_chain_jobs: Sequence[LoadJobInfo] | None = None,
    ) -> list[FollowupJobRequest]:
        """Returns the job that loads a chain; dlt calls this when all files of the chain are there."""
        files = [job.file_path for job in completed_table_chain_jobs or ()]
        return [job_request(table_chain[0]["name"], files)] if files else []

    def load_chain(self, load_id: str, job: ParsedLoadJobFileName, files: Sequence[str]) -> None:
        """Loads the files of a chain into the pools of its tables."""
        root = get_root_table(self.schema.tables, job.table_name)
        with as_errors_of_dlt():
            parts = [
                TablePart(table, self._shape(table), own)
                for table in self._chain(root["name"])
                if (own := files_of(table.name, files)) or table.disposition != APPEND
            ]
            message = f"dlt: load package {load_id}"
            ChainLoad(parts, token=f"dlt:{load_id}:{job.file_id}", message=message).run(self.dataset)

    def complete_load(self, load_id: str) -> None:
        """Records that the load package is finished."""
        with as_errors_of_dlt():
            self.own.note_load(load_id)

    def _chain(self, root: str) -> list[PipelineTable]:
        """Returns the root table and its nested tables that have records, the root first."""
        tables = filter(has_table_seen_data, get_nested_tables(self.schema.tables, root))
        return [self._table(self.prepare_load_table(table["name"])) for table in tables]

    def _check_pools(self, root: str) -> None:
        """Raises InvalidInput if a pool of the chain cannot take the records of its table."""
        chain = self._chain(root)
        for table in chain:
            if (pool := self.dataset.pool(table.name)) is not None:
                check_pool(table, pool, has_nested=len(chain) > 1)

    # --- state

    def get_stored_schema(self, schema_name: str | None = None) -> StorageSchemaInfo | None:
        """Returns the newest stored version of a schema; None if no version is stored."""
        with as_errors_of_dlt():
            return self.own.newest_schema(schema_name)

    def get_stored_schema_by_hash(self, version_hash: str) -> StorageSchemaInfo | None:
        """Returns the stored version of the schema that has this hash; None if no version has it."""
        with as_errors_of_dlt():
            return self.own.schema_of_hash(version_hash)

    def get_stored_state(self, pipeline_name: str) -> StateInfo | None:
        """Returns the newest state of a pipeline.  Raises DestinationUndefinedEntity if no pipeline ever ran
        here."""
        with as_errors_of_dlt():
            if self.dataset.pool(self.schema.state_table_name) is None:
                name = self.dataset.pool_name(self.schema.state_table_name)
                raise DestinationUndefinedEntity(f"{self.config}: there is no pool {name!r}")
            return self.own.newest_state(pipeline_name)

    # --- tables

    def _table(self, prepared: PreparedTableSchema) -> PipelineTable:
        return table_of(prepared, self.schema.naming.normalize_identifier)

    def _shape(self, table: PipelineTable) -> PoolShape:
        return self.own.shape(table.name) or shape_of(table, self.schema.naming.normalize_identifier)
