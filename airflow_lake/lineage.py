"""Reports to OpenLineage, if Airflow's provider for it is installed, which data a task reads and writes.

The provider calls `get_openlineage_facets_on_start`, `_on_complete` and `_on_failure` of a task (`Tells`);
without it nothing here is called (decision 112).

A pool is one dataset, by whatever name a task calls its lake.  The namespace is that of its store; the name is
the lake's path and the pool.

    s3://bucket   lake/flights        the branch main        s3://bucket   lake/flights@dev     another one
    file          /srv/lake/flights   a lake on a disk

A dataset's facets are schema, version, storage, and the name by which Airflow knows it (symlink).  An output
also has the lifecycle change and the statistics.  When a task starts, version and schema are those of the newest
state.  When it has ended, an output has the version that the task committed, with its schema; a pool that was
only read has the version that was read.  If an input is also an output, the input has no version then, because a
task may read it at several.  Uncommitted work, and pools that cannot be read, are left out, because lineage must
never fail a task.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from airflow_lake.assets import SCHEME, asset_uri
from airflow_lake.effects import Effect
from airflow_lake.reach import open_lake
from lake_core.errors import LakeError
from lake_core.naming import MAIN
from log_lake.view.addresses import is_uri

if TYPE_CHECKING:
    from log_lake.lake import Lake
    from log_lake.reading.revision import Revision

log = logging.getLogger(__name__)

MAX_POOLS = 100
"""The most pools of one event: an event is one message, with the schema of each pool."""
MAX_FILES = 100
"""The most files of one event; above this number, it names the folders of the files, at most as many."""
LAYER = "log-lake"


class Tells:
    """A task whose `effects` are reported: the planned ones when it starts, the real ones when it ends."""

    effects: Sequence[Effect] = ()
    sql: str

    def planned_effects(self) -> Iterable[Effect]:
        """Returns what the task will do; call it once its templates are rendered."""
        return self.effects

    def get_openlineage_facets_on_start(self) -> Any:
        """Returns the reads and writes that the task plans, as OpenLineage describes them."""
        return lineage_of(self.planned_effects(), sql=getattr(self, "sql", ""))

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """Returns the reads and writes that the task has finished."""
        return lineage_of(self.effects or self.planned_effects(), sql=getattr(self, "sql", ""))

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Any:
        """Returns the reads and writes that the task finished before it failed, and the planned ones."""
        done = {(one.lake, one.pool, one.branch) for one in self.effects}
        planned = [one for one in self.planned_effects() if (one.lake, one.pool, one.branch) not in done]
        return lineage_of([*self.effects, *planned], sql=getattr(self, "sql", ""))


def lineage_of(effects: Iterable[Effect], *, sql: str = "") -> Any:
    """Returns the datasets and facets of these effects, as OpenLineage's provider expects them."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import sql_job

    opened = cache(open_lake)
    inputs: dict[tuple[str, str], Any] = {}
    outputs: dict[tuple[str, str], Any] = {}
    effects = list(effects)
    for effect in effects[-MAX_POOLS:]:
        try:
            lake = opened(effect.lake)
        except LakeError as error:
            log.debug("no lineage of %s: %s", effect.pool, error)
            continue
        revision = _revision(lake, effect)
        branch = effect.branch if revision is None else revision.branch
        where = identity(lake.store.uri, effect.pool, branch=branch)
        facets = _facets(effect, revision)
        if effect.reads:
            read = facets if not (effect.is_done and effect.writes) else _without_version(facets)
            inputs[where] = InputDataset(*where, facets=read)
        if effect.writes:
            outputs[where] = OutputDataset(
                *where, facets=facets | _change(effect), outputFacets=_statistics(effect)
            )
    files = [file for effect in effects for file in effect.files]
    for where in files_named(files):
        inputs[where] = InputDataset(*where)
    job = {"sql": sql_job.SQLJobFacet(query=sql)} if sql else {}
    return OperatorLineage(inputs=list(inputs.values()), outputs=list(outputs.values()), job_facets=job)


def identity(uri: str, pool: str = "", *, branch: str = MAIN) -> tuple[str, str]:
    """Returns the namespace and the name by which OpenLineage knows a file, or a pool in the lake at that
    URI."""
    parts = urlsplit(uri)
    path = parts.path.rstrip("/") if pool else parts.path
    if pool:
        path = f"{path}/{pool}" + ("" if branch in ("", MAIN) else f"@{branch}")
    if parts.scheme in ("", "file"):
        return "file", path
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", path.lstrip("/")  # no user, no password


def files_named(uris: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the namespace and name of each of the files; if there are many files, of their folders instead."""
    if len(uris) > MAX_FILES:
        uris = list(dict.fromkeys(uri.rpartition("/")[0] for uri in uris))[:MAX_FILES]
    return (identity(uri) for uri in uris)


def dataset_of_asset(asset: Any, lineage_context: Any = None) -> Any:
    """Returns the dataset of an asset `lake://...`; None if its lake is not found.  The provider calls this for
    the scheme."""
    from openlineage.client.event_v2 import Dataset

    parts = urlsplit(asset.uri)
    pool = unquote(parts.path.rpartition("/")[2])
    branch = unquote(parts.query.removeprefix("branch=")) or MAIN
    try:
        where = identity(_store_uri(parts.netloc, parts.path), pool, branch=branch)
    except LakeError as error:
        log.debug("no lineage of %s: %s", asset.uri, error)
        return None
    return Dataset(*where)


def _store_uri(first: str, path: str) -> str:
    """Returns the URI of the lake of an asset `lake://FIRST/PATH`.  If the path is only the name of a pool,
    `first` is the id of a connection; otherwise it is the scheme of the store."""
    folder = unquote(path.rpartition("/")[0]).strip("/")
    if folder:
        return f"file:///{folder}" if first == "file" else f"{first}://{folder}"
    from airflow_lake.hooks.lake import LakeHook

    uri = LakeHook(unquote(first)).address.uri
    return uri if "://" in uri else f"file://{uri}"


def _revision(lake: Lake, effect: Effect) -> Revision | None:
    """Returns what was committed or read; if there is no version yet, the newest state.  None if it cannot be
    read."""
    try:
        pool = lake.pool(effect.pool)
        if effect.version:  # an empty pool has the version 0, which no entry has
            return pool.at_version(effect.version, branch=effect.branch)
        return pool.at(effect.branch)
    except LakeError as error:
        log.debug("no schema of %s: %s", effect.pool, error)
        return None


def _without_version(facets: dict[str, Any]) -> dict[str, Any]:
    return {name: facet for name, facet in facets.items() if name != "version"}


def _facets(effect: Effect, revision: Revision | None) -> dict[str, Any]:
    """Returns the facets of a dataset; if the pool cannot be read, only its name in Airflow and the version."""
    from openlineage.client.facet_v2 import (
        dataset_version_dataset,
        schema_dataset,
        storage_dataset,
        symlinks_dataset,
    )

    name = asset_uri(effect.pool, lake=effect.lake, branch=effect.branch)
    known_as = symlinks_dataset.Identifier(
        namespace=f"{SCHEME}://{'' if is_uri(effect.lake) else effect.lake}",
        name=effect.pool if not is_uri(effect.lake) else name.removeprefix(f"{SCHEME}://"),
        type="TABLE",
    )
    facets: dict[str, Any] = {"symlinks": symlinks_dataset.SymlinksDatasetFacet(identifiers=[known_as])}
    version = effect.version
    if version is None and revision is not None and not effect.is_done:
        version = revision.version
    if version is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=str(version))
    if revision is None:
        return facets
    return facets | {
        "schema": schema_dataset.SchemaDatasetFacet(fields=_fields(revision)),
        "storage": storage_dataset.StorageDatasetFacet(
            storageLayer=LAYER, fileFormat=revision.settings["format"]
        ),
    }


def _fields(revision: Revision) -> list[Any]:
    from openlineage.client.facet_v2 import schema_dataset

    return [
        schema_dataset.SchemaDatasetFacetFields(name=field.name, type=str(field.type))
        for field in revision.schema
    ]


def _change(effect: Effect) -> dict[str, Any]:
    from openlineage.client.facet_v2 import lifecycle_state_change_dataset as lifecycle

    if not effect.change:
        return {}
    change = lifecycle.LifecycleStateChange(effect.change)
    return {"lifecycleStateChange": lifecycle.LifecycleStateChangeDatasetFacet(lifecycleStateChange=change)}


def _statistics(effect: Effect) -> dict[str, Any]:
    from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics

    if effect.records is None and effect.objects is None and effect.size is None:
        return {}
    return {
        "outputStatistics": statistics.OutputStatisticsOutputDatasetFacet(
            rowCount=effect.records, size=effect.size, fileCount=effect.objects
        )
    }
