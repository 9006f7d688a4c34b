"""Reads tables with Iceberg's own Spark runtime; run by a Python with the PySpark that this runtime needs.

    PYTHON iceberg_reader.py ASKED ANSWERS JAR CATALOG

ASKED is JSON: for each name a location, or a table of the catalog `l`, and a filter or null.  CATALOG is the
address of that catalog.  ANSWERS gets, pickled, for each name the rows of both of Iceberg's readers (columns at
once, and row by row), as plain values; or the error.  JAR is a file, or the name of a package that Spark fetches.
Nothing of the lake is imported.
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession

READERS = {"columns": "true", "rows": "false"}


def plain(value: Any) -> Any:
    """Returns rows as dictionaries, and maps as lists of pairs."""
    if isinstance(value, Row):
        return {name: plain(part) for name, part in value.asDict().items()}
    if isinstance(value, dict):
        return [(plain(key), plain(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [plain(part) for part in value]
    return bytes(value) if isinstance(value, bytearray) else value


def main(asked: str, answers: str, jar: str, catalog: str) -> None:
    option = "spark.jars" if jar.endswith(".jar") else "spark.jars.packages"
    spark = (
        SparkSession.builder.master("local[1]")
        .config(option, jar)
        .config("spark.sql.catalog.l", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.l.type", "rest")
        .config("spark.sql.catalog.l.uri", catalog)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    found: dict[str, dict[str, Any]] = {}
    for name, (place, condition) in json.loads(Path(asked).read_text()).items():
        found[name] = {}
        for reader, vectorized in READERS.items():
            try:
                read = spark.read.option("vectorization-enabled", vectorized)
                is_table = place.startswith("l.")
                frame = read.table(place) if is_table else read.format("iceberg").load(place)
                rows = (frame if condition is None else frame.where(condition)).collect()
                found[name][reader] = [plain(row) for row in rows]
            except Exception as error:
                found[name][reader] = str(error)[:2000]
    Path(answers).write_bytes(pickle.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
