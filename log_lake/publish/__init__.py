"""Publishes a branch of a pool as an Iceberg table, which other programs read without the lake.

    place        where a table is, and how readers name it
    published    which table is there now: numbered metadata, the hint
    lag          how far the table lags behind the branch
    fields       which fields of the pool the table has; what Iceberg cannot express
    names        the names of key fields in the table and in the objects
    schema       columns with their ids, the name mapping, the sort order
    rules        which objects the table has, and by which rule records of them are hidden; pure
    positions    the positions of the hidden records, found by the lake's own reader, as a file of deletes
    bounds       statistics of the lake as bounds of Iceberg
    data_files   an object, and its deletes, as Iceberg describes them
    manifests    lists of files; only changed ones are written again
    metadata     the table's metadata
    files        which descriptions the next table reuses, and which are new
    tags         the tags that keep published versions
    commit       files, metadata and hint on the store
    leftovers    files of older tables that no table needs
    run          publishes: tag, files, metadata, hint
    report       what was done, in words

No data is copied: the table names the pool's own data objects.  A tag keeps the version that the table shows, so
no vacuum deletes what readers of the table need.  A publication writes the metadata with the next number, which
only one of several publishers can create, and then the hint.  Until then readers see the previous table.

Called by `lake publish`, `lake show` and the compact agent.  docs/publish.md has the limits.
"""

from typing import TYPE_CHECKING

from lake_core.faces import on_demand

if TYPE_CHECKING:
    from log_lake.publish.lag import Lag, publication
    from log_lake.publish.run import PublishResult, publish_iceberg

__all__ = ["Lag", "PublishResult", "publication", "publish_iceberg"]

__getattr__ = on_demand(
    __name__, {"Lag": "lag", "PublishResult": "run", "publication": "lag", "publish_iceberg": "run"}
)
