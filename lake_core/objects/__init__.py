"""Data objects: immutable Parquet files, sorted by the pool key.

`normalize` brings records into the types that are stored, `schema` says how differing shapes unite; `statistics`
what the catalog learns of an object, `metadata` what the file says of itself; `write` sorts and writes, `read`
streams a key range back.  `zng` and `zst` hold values without a schema, in rows and in columns.  Objects know
nothing of journals.
"""
