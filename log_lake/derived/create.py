"""Makes a derived pool: checks the query, computes it over all records of the source, and lists the pool last.

Until the pool is listed no program sees it.  A process that is killed leaves only a folder that `lake fsck` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lake_core.errors import AlreadyExists, InvalidInput
from lake_core.keys import PoolKey
from lake_core.phrases import did_you_mean
from lake_core.records.pools import PoolConfig
from log_lake.derived.definition import Definition
from log_lake.derived.engine import computing
from log_lake.derived.standing import check_source
from log_lake.derived.step import keep
from log_lake.derived.writing import StepResult
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.rekey import names_what_is_left
from log_lake.texts.is_text import require_text


@dataclass(frozen=True)
class Derived:
    """The configuration of a new derived pool, and its first step.  In a dry run the configuration is what the
    pool would have."""

    config: PoolConfig
    step: StepResult


def derive(
    lake: Lake,
    name: str,
    *,
    source: str,
    query: str,
    key: str = "",
    settings: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> Derived:
    """Makes the pool `name`, which holds the answer of a query over the pool `source`.  Later steps (`step.keep`)
    bring it up to date with the source.

    `key`: columns of the query.  If it is empty, the key is the columns of GROUP BY or, in a query without GROUP
    BY, the columns with the key of the source.  Raises AlreadyExists, NotFound, InvalidInput (for a query that no
    step could bring up to date), and what loads raise.
    """
    require_text(query, "query", example="'SELECT day, count(*) AS n FROM logs GROUP BY day'")
    if name in lake.catalog.load().state.names:
        raise AlreadyExists(f"pool {name!r} exists already; use another name")
    of = lake.pool(source)
    definition, columns = _checked(of, query)
    parsed = PoolKey.parse(key or definition.key)
    for one in parsed.names:
        if one not in columns:
            raise InvalidInput(
                f"derive: the key {one!r} is no column of the query; {did_you_mean(one, columns)}"
            )
    own = {**(settings or {}), "derive.from": of.config.id, "derive.query": query}
    config = lake.new_pool(name, key=parsed, settings=own)
    lake.catalog.check_new(config)
    if dry_run:
        newest = of.history.load_open().version
        return Derived(
            config, StepResult(name, of.name, None, 0, newest, newest, None, why="nothing is made")
        )
    pool = lake.unlisted(config)
    with names_what_is_left(pool):
        step = keep(lake, pool)
        lake.catalog.create(config)
    return Derived(config, step)


def _checked(source: Pool, query: str) -> tuple[Definition, list[str]]:
    """Returns the definition of the query over the newest records of the source, and the names of its answer's
    columns."""
    if source.sub_pool:
        raise InvalidInput(f"derive: {source.name}: name a pool of records; the sub-pools are not followed")
    check_source(source.config)
    view = source.at_branch()
    if not view.references:
        raise InvalidInput(
            f"derive: pool {source.name!r} has no record yet, and a query needs the fields of records: load "
            "some first"
        )
    with computing(view, query) as one:
        if one.definition.table != source.name:
            raise InvalidInput(
                f"derive: the query reads {one.definition.table!r}; let it read {source.name!r}"
            )
        return one.definition, one.columns
