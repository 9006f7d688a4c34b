"""A destination of dlt: pipelines load into pools.

    >>> import dlt
    >>> from log_lake.dlt import lake
    >>> pipeline = dlt.pipeline("shop", destination=lake("memory://shop"), dataset_name="shop")
    >>> info = pipeline.run([{"id": 1, "name": "nail"}], table_name="articles", primary_key="id")
    >>> from log_lake import Lake
    >>> Lake.open("memory://shop").pool("shop.articles").at().to_table(columns=["id", "name"]).to_pylist()
    [{'id': 1, 'name': 'nail'}]

    tables         the table of dlt as one value; the key and the kind of its pool (pure)
    dataset        the pools of a dataset: names, open, make, drop
    writes         the writes of one table: add, replace, merge
    chain          which files of a load package go into which pool, under which token (pure); the job that does it
    own_pools      the pools that dlt keeps its state in
    client         what dlt's loader calls
    destination    the destination, its configuration, and a hint for resources

dlt extracts and normalizes; it hands over the Parquet files of one table after another.  When all files of a
table and of its nested tables are there, one job loads them: one transaction per pool, each under a token of
the load package.

Nothing of the lake imports this room, and only it imports dlt (the extra `dlt`).
"""

from log_lake.extras import need

need("dlt", "log_lake.dlt")

from log_lake.dlt.destination import lake, lake_adapter  # noqa: E402

__all__ = ["lake", "lake_adapter"]
