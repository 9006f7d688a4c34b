"""Data objects: immutable files of sorted records.

`normalize` brings records into the stored types, which `schemas.schema` unites.  `statistics` has the bounds that a
transaction keeps of an object, `metadata` the JSON in the object's own footer.  `write` sorts and writes, `read`
streams a key range back.  `merge` merges sorted streams, for scans and for loads.  `containers` has their formats:
Parquet, ZNG, ZST.  `spool` holds batches on the local disk while work needs them.  `log_lake.zng` holds values
without a schema, in rows and in columns.  Objects know nothing of journals.
"""
