"""A table chain of a load package: which files go into which pool, under which token, and the job that does it.

dlt calls a root table and its nested tables a chain.  When the last of their files is there, the loader makes
one job for the chain.  Each table becomes one transaction of its pool, that of the root table last.  A token
names the load package, the job and the table, so a job that runs again commits nothing twice.

| disposition | why a repeated job changes nothing |
|---|---|
| append | each table has a token |
| replace, merge | the root table has a token; a nested table has none: the same files replace the same records |

A merge or a replace of the root table begins before those of its nested tables.  It commits only if no other
merge or replace of the root table was committed since; otherwise all tables are written again.  So if two
pipelines write the same records at once, the records that stay, root and nested, are those of one of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from dlt.common.destination.client import HasFollowupJobs, RunnableLoadJob
from dlt.common.storages.load_package import ParsedLoadJobFileName
from dlt.destinations.job_impl import ReferenceFollowupJobRequest

from log_lake.dlt.dataset import DatasetPools
from log_lake.dlt.tables import MERGE, REPLACE, PipelineTable, PoolShape, check_shape
from log_lake.dlt.writes import RootIds, add, merge_nested, replace_all
from log_lake.lake.branches import planned
from log_lake.lake.pool import Pool
from log_lake.lake.write import WriteArguments


@dataclass(frozen=True)
class TablePart:
    """A table of a chain, the pool that it gets, and its files in the order in which they were written."""

    table: PipelineTable
    shape: PoolShape
    files: tuple[str, ...]


EVERY_RECORD = {"nokey": "accept"}
"""Options for reading the files: a record without the key is no error of the reader, because `check_keyed` refuses
the whole load then."""

Placed = Sequence[tuple[TablePart, Pool]]
"""Tables of a chain, each with its pool."""


def job_request(root: str, files: Sequence[str]) -> ReferenceFollowupJobRequest:
    """Returns the request for the job that loads a chain; the job's name is the same whatever the order of the
    files."""

    def place(file: str) -> tuple[bool, str]:
        name = os.path.basename(file)
        return ParsedLoadJobFileName.parse(name).table_name != root, name

    ordered = sorted(files, key=place)
    return ReferenceFollowupJobRequest(os.path.basename(ordered[0]), ordered)


def files_of(table: str, files: Sequence[str]) -> tuple[str, ...]:
    """Returns the files of one table, those written earlier first.  So if several records have the same key, the
    record that was written last becomes the newest."""
    own = [file for file in files if ParsedLoadJobFileName.parse(os.path.basename(file)).table_name == table]
    return tuple(sorted(own, key=lambda file: (os.stat(file).st_mtime_ns, file)))


def check_pool(table: PipelineTable, pool: Pool, *, has_nested: bool) -> None:
    """Raises InvalidInput if the pool, which may be older than the table, cannot take the table's records."""
    there = PoolShape(pool.config.key, pool.config.kind)
    check_shape(table, there, pool=pool.name, has_nested=has_nested)


@dataclass(frozen=True)
class ChainLoad:
    """What the load of one chain needs.  `parts` are its tables, the root table first.  `token` and `message` are
    used for the writes of all tables."""

    parts: Sequence[TablePart]
    token: str
    message: str

    def run(self, dataset: DatasetPools) -> None:
        """Loads the parts, the root table last.  Raises what loads raise."""
        placed = [(part, dataset.made(part.table.name, part.shape)) for part in self.parts]
        for part, pool in placed:
            check_pool(part.table, pool, has_nested=len(placed) > 1)
        (root, pool), *nested = placed
        table, files, write = root.table, root.files, self._write(root.table)
        if table.disposition == REPLACE:
            replace_all(pool, table, files, write, first=lambda: self._replace(nested))
        elif table.disposition == MERGE and nested:
            roots = RootIds.of_files(files, table)
            planned(lambda: add(pool, table, files, write, first=lambda: self._merge(nested, roots)))
        else:
            for part, below in reversed(nested):
                add(below, part.table, part.files, self._write(part.table))
            add(pool, table, files, write)

    def _replace(self, nested: Placed) -> None:
        for part, pool in reversed(nested):
            replace_all(pool, part.table, part.files, self._write())

    def _merge(self, nested: Placed, roots: RootIds) -> None:
        for part, pool in reversed(nested):
            merge_nested(pool, part.table, part.files, roots, self._write())

    def _write(self, table: PipelineTable | None = None) -> WriteArguments:
        """Returns the arguments of a write, with the token of a table if one is given."""
        token = f"{self.token}:{table.name}" if table else ""
        return WriteArguments(token=token, message=self.message, options=EVERY_RECORD)


class LoadsChains(Protocol):
    """A client of the lake that dlt gives to a job, which loads a chain by it."""

    def load_chain(self, load_id: str, job: ParsedLoadJobFileName, files: Sequence[str]) -> None:
        """Loads the files of a chain into the pools of its tables."""
        ...


class FileJob(RunnableLoadJob, HasFollowupJobs):
    """The job of one file.  It does nothing: when all files of a chain are there, the chain's job (`ChainJob`)
    loads them."""

    def run(self) -> None:
        """Does nothing; dlt calls this in a thread, and wakes its loader afterwards."""


class ChainJob(RunnableLoadJob):
    """The job that loads the files of a root table and of its nested tables (dlt's table chain)."""

    def __init__(self, file_path: str) -> None:
        super().__init__(file_path)
        self.files = ReferenceFollowupJobRequest.resolve_references(file_path)

    def run(self) -> None:
        """Loads the chain; dlt calls this in a thread."""
        client = cast(LoadsChains, self._job_client)
        client.load_chain(self._load_id, self._parsed_file_name, self.files)
