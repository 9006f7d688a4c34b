"""Data objects: immutable files of sorted records.

    normalize    converts records to the types that objects store; `schemas.schema` unites these
    statistics   bounds of an object's columns, which its transaction keeps
    metadata     the JSON in the object's own footer
    write, read  sort and write an object; stream a key range back
    merge        merges sorted streams, for scans and for loads
    containers   the formats of objects: Parquet, ZNG, ZST
    spool        holds batches on the local disk while work needs them

`log_lake.zng` holds values without a schema, in rows and in columns.  Nothing here knows of journals.
"""
