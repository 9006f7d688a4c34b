"""A log-structured lake: pools of sorted records on an object store, kept by a journal of transactions.

    >>> import pyarrow as pa
    >>> from log_lake import Lake
    >>> lake = Lake.create("memory://tour")
    >>> pool = lake.create_pool("logs", key="ts")
    >>> pool.branch("main").append(pa.table({"ts": [2, 1], "level": ["info", "warn"]})).version
    1
    >>> pool.at("main").to_table().to_pylist()
    [{'ts': 1, 'level': 'warn'}, {'ts': 2, 'level': 'info'}]

This package is the storage engine above its core (`lake_core`); it imports neither Airflow nor Spark.  Its
rooms (folders) are on floors, and a lower floor never imports a higher one.  `lint-imports` checks this by
pyproject.toml, and a test compares this list with pyproject.toml:

    all_settings   every setting that a pool may carry, gathered from the rooms
    cli            the `lake` command: the options of each command, and the functions that run it
    dlt            a destination of dlt: pipelines load into pools
    service        queries and loads by HTTP, for programs without Python, by `lake serve`
    iceberg_catalog  a read-only Iceberg REST catalog over lakes, by `lake serve`
    metrics        the state of lakes as metrics of Prometheus, by `lake serve`
    console        shared by all commands of the project: parser, outputs, tables, progress
    view           the pages of the web view, in Airflow and by `lake ui`
    doctor         whether a lake is well: signs, findings, the command that mends each
    agents         programs that keep the lake in order; one folder an agent
    kafka          topics of Kafka into pools, with their offsets in the journal
    erasure        removes records from every object, with a receipt
    derived        pools that hold the answer of a query over another pool, kept as it changes
    sql_writes     statements of SQL that change a pool
    system_tables  the lake's own tables, SQL over pools, `lake inspect`
    repair         finds damage, takes it out, rebuilds a pool from its objects
    vacuum         finds and deletes objects that nothing needs
    policies       pools as a file: read it, compare it with the lake, apply it, write it
    publish        a branch as an Iceberg table for other programs; no data is copied
    rewriting      replaces references by new objects: begin, write, commit
    offered_tables  the list of tables about the whole lake that higher rooms make
    coverage       which intervals of its schedule a pool holds, lacks, or has late
    lake           the classes that users call: Lake, Pool, Branch, View, Feed, and the results of writes

    loading        turns files into sorted objects and a draft
    reading        turns a snapshot into sorted records: plan, merge, tombstones

    fields         the names of fields: as readers see them, and as objects store them
    settings       what a setting is; typed access to those of a pool
    objects        sorted data objects
    combine        records of equal keys: append, upsert, aggregate
    compaction     which references to merge, in which jobs
    indexes        which values an object certainly lacks: index rules, their objects, questions to these
    where          conditions as text, and over records
    reverts        builds the draft that undoes a transaction
    presence       checks that objects are on the store; finds out why one is missing
    content        one sum of the records of tables, whatever their order, cut and types
    zng            values without a schema, in rows (ZNG) and in columns (ZST); knows no pools
    columns        whole columns: typed JSON, nested values, casts, keys
    texts          values as people write them, for a field or a key
    workers        where units of work run: in this process, or on Spark
    leases         which processes work on a pool, so that a vacuum keeps what they need
    stores         S3, Google Cloud Storage, locks; which store an address and the environment mean

    extras         packages that an extra of the wheel brings
    measuring      seconds of phases, and spans and metrics for OpenTelemetry

Read `lake.lake` for what users call, docs/architecture.md for the paths of a load, a scan and a compaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake_core.errors import LakeError
from lake_core.faces import on_demand
from log_lake.all_settings import SETTINGS, TOGETHER
from log_lake.offered_tables import OfferedTable, offer
from log_lake.settings.settings import declare

if TYPE_CHECKING:
    import pyarrow as pa

    from log_lake.lake.lake import Lake

__all__ = ["Lake", "LakeError"]

declare(SETTINGS, TOGETHER)


def _health_schema() -> pa.Schema:
    from log_lake.doctor.health_table import HEALTH

    return HEALTH


def _health(lake: Lake) -> pa.Table:
    from log_lake.doctor.health_table import health_table

    return health_table(lake)


offer("lake:health", OfferedTable(_health_schema, _health))

__getattr__ = on_demand(__name__, {"Lake": "lake.lake"})
