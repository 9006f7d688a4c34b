"""What callers change, each as one transaction: loads of a body or of listed files, statements, pools.

A caller that did not get the answer asks again with the same token, and gets the first answer.  The caller's
name is the author of the transaction.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from lake_core.errors import InvalidInput
from lake_core.naming import is_own
from lake_core.store import address_of
from log_lake.iceberg_catalog.callers import Caller
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.results import LoadResult
from log_lake.loading.places import FILES, files_of, refusal, sources
from log_lake.loading.sources import files_to_read
from log_lake.service.problems import Problem
from log_lake.service.routes import Load, PoolToCreate, PoolToDrop, Query
from log_lake.sql_writes import StatementResult, execute
from log_lake.system_tables.engine import SqlLimits
from log_lake.system_tables.stopping import stopped_after

BODY = "the body"
"""The name of a body in errors, where a file's name would be."""
MOST_FILES = 10_000
"""Lines of a list of files."""
SERVER = "lake serve"
"""The author of changes by a caller without a name."""


class PoolDropped(msgspec.Struct, frozen=True):
    """The answer to a request that dropped a pool: the new version of the list of pools."""

    dropped: str
    version: int


class PoolCreated(msgspec.Struct, frozen=True):
    """The answer to a request that created a pool."""

    created: str
    id: str
    key: str
    kind: str


def lake_for(caller: Caller, lake: Lake) -> Lake:
    """Returns the lake, with the caller as the author of its transactions."""
    return Lake.open_on(lake.store, author=caller.name or SERVER)


def _pool(lake: Lake, name: str) -> Pool:
    """Returns the pool to load into.  Raises NotFound, and InvalidInput for a pool that the lake itself
    makes."""
    if is_own(name):
        raise InvalidInput(f"pool {name!r} is the lake's own; name a pool that a user made")
    return lake.pool(name)


TRANSACTIONS = 1_000
"""How many transactions, newest first, are searched for the one that used a token first.  An older one is not
checked."""


def check_own(pool: Pool, result: LoadResult | StatementResult, *, token: str) -> None:
    """Raises Problem if another caller used the token first (decision 442)."""
    if not result.repeated or result.version is None:
        return
    for version, first in itertools.islice(pool.log(), TRANSACTIONS):
        if version > result.version:
            continue
        if version < result.version or first.id != result.transaction_id:
            return  # purged
        whose = f"token {token!r} stands for version {version} of pool {pool.name!r}"
        if first.author != pool.context.author:
            raise Problem(
                409, f"{whose}, which another caller committed; nothing was done; use a token of your own"
            )
        return


def load_body(lake: Lake, load: Load, *, path: str, format: str) -> LoadResult:
    """Loads the body, which is in a file.  Raises Problem (a token that is in use), and what `Branch.load`
    raises."""
    pool = _pool(lake, load.pool)
    done = pool.branch(load.branch).load(
        [BODY],
        format=format,
        options=load.options,
        token=load.token,
        message=load.message,
        paths={BODY: path},
    )
    check_own(pool, done, token=load.token)
    return done


def load_uris(lake: Lake, load: Load, text: str, *, environ: Mapping[str, str]) -> LoadResult:
    """Loads the files that a text lists.  Raises Problem for a file that the caller may not name, and what
    `Branch.load` raises."""
    pool = _pool(lake, load.pool)
    uris = uris_in(text)
    check_uris(uris, pool, environ=environ)
    files = files_to_read(uris, pool.config.settings, load.options, access=address_of(pool.store))
    done = pool.branch(load.branch).load(
        [file.uri for file in files],
        format=load.format or "auto",
        options=load.options,
        token=load.token,
        message=load.message,
    )
    check_own(pool, done, token=load.token)
    return done


def uris_in(text: str) -> list[str]:
    """Returns the lines of a `text/uri-list`.  Raises Problem if there are none, or too many."""
    uris = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not 0 < len(uris) <= MOST_FILES:
        raise Problem(400, f"the list has {len(uris):,} files; give 1 to {MOST_FILES:,} URIs, one a line")
    return uris


def check_uris(uris: list[str], pool: Pool, *, environ: Mapping[str, str]) -> None:
    """Raises Problem if the server may not open one of the files for a caller."""
    places = sources(pool.settings) | files_of(environ)
    for uri in uris:
        why = "it is no URI, and no absolute path"
        if "://" in uri or os.path.isabs(uri):
            why = refusal(
                uri,
                places,
                otherwise="it is not below ingest.source or intervals.source of the pool; the variable "
                f"{FILES} of the server allows more",
            )
        if why:
            raise Problem(403, f"file {str(InvalidInput(uri))!r}: {why}; nothing was loaded")


def run_statement(lake: Lake, sql: str, asked: Query, *, limits: SqlLimits, seconds: float) -> Any:
    """Runs a statement that changes a pool, within so many seconds; returns its result.

    Raises Problem (a token that is in use), and what `execute` raises.
    """
    why = f"took longer than the {seconds:g} s that this server allows; nothing was changed; change fewer records"
    with stopped_after(seconds, why) as stop:
        done = execute(
            lake,
            sql,
            token=asked.token,
            message=asked.message,
            dry_run=asked.dry_run,
            limits=limits,
            stop=stop,
        )
    if done.repeated:
        check_own(lake.pool(done.pool), done, token=asked.token)
    return done


def create_pool(lake: Lake, asked: PoolToCreate) -> PoolCreated:
    """Creates a pool.  Raises AlreadyExists, InvalidInput."""
    pool = lake.create_pool(asked.pool, key=asked.key, kind=asked.kind)
    return PoolCreated(pool.name, pool.config.id, asked.key, asked.kind)


def drop_pool(lake: Lake, asked: PoolToDrop) -> PoolDropped:
    """Drops a pool; `lake restore` restores it.  Raises NotFound."""
    _pool(lake, asked.pool)
    return PoolDropped(asked.pool, lake.drop_pool(asked.pool))
