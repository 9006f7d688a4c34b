"""A log-structured lake: pools of sorted records on an object store, kept by a journal of transactions.

    >>> import pyarrow as pa
    >>> from lake_core import Lake
    >>> lake = Lake.create("memory://tour")
    >>> pool = lake.create_pool("logs", key="ts")
    >>> pool.branch("main").append(pa.table({"ts": [2, 1], "level": ["info", "warn"]})).version
    1
    >>> pool.at("main").to_table().to_pylist()
    [{'ts': 1, 'level': 'warn'}, {'ts': 2, 'level': 'info'}]

This package is the whole storage engine; it imports neither Airflow nor Spark.  Its rooms stand on floors, and a
lower floor never imports a higher one (pyproject.toml holds them to it, a test holds this list to pyproject.toml):

    cli            the `lake` command, one module a noun
    agents         who keeps the house: one folder an agent
    erasure        records that must be gone from every object, with a receipt
    system_tables  the lake's own tables, SQL over pools, `lake inspect`
    repair         what is damaged: find it, take it out, make a pool anew from its objects
    vacuum         objects that are not needed: find them, delete them
    policies       pools as a file: read it, compare it with the lake, apply it, write it
    publish        a branch as an Iceberg table for other programs; no data is copied
    lake           what a user holds: Lake, Pool, Branch, View, Feed, and the results of writes

    loading        data in: files to sorted objects and a draft
    reading        data out: a snapshot to sorted records by plan, merge, tombstones

    catalog        the list of pools; settings
    history        one pool: state, snapshots, rebase, group commit
    journal        numbered entries by put-if-missing; purge
    checkpoints    a folded state as one file

    conditions     which records are meant
    objects        sorted data objects
    combine        records of equal keys: append, upsert, aggregate
    leases         who is at work on a pool, so that nothing it needs is deleted
    context        store, lake id, ids, clock, author: one value from `Lake` down
    store          local folders, memory, S3, Google Cloud Storage, locks

    records        typed actions and their bytes (docs/format.md); from here down no I/O
    values         classes of values, text, typed JSON
    naming         every name on the store, and ids
    keys           keys as bytes that sort alike
    extras         packages that an extra of the wheel brings
    errors         every error, named by what the caller does next
    phrases        how numbers, choices and unknown names are said
    faces          packages that import a name when it is first used

Read `lake.lake` for what users call, `journal.journal` for what makes it right, `history.rebase` for what happens
when two writers meet, docs/format.md for what is stored, docs/glossary.md for the words.
"""

from typing import TYPE_CHECKING

from lake_core.faces import on_demand

if TYPE_CHECKING:
    from lake_core.errors import LakeError
    from lake_core.lake import Lake

__all__ = ["Lake", "LakeError"]

__getattr__ = on_demand(__name__, {"Lake": "lake.lake", "LakeError": "errors"})
