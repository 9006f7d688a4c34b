"""Whole columns of records: what Arrow's kernels do not do, once for every room above.

    json_text    columns as JSON: as people read it, and as a field without a common type stores it
    nested       records, lists and maps: their parts, and columns made of parts
    cast         columns and tables in another schema
    keys         keys of whole columns as bytes that compare in the order of the pool
    variant      the values of Parquet's VARIANT

Everything here is pure.
"""
