"""Data objects: immutable Parquet files, sorted by the pool key.

`schema` says how differing shapes unite, `types` how users name types, `jsontext` how a value of any type
becomes JSON; `statistics` what the catalog learns of an object, `metadata` what the file says of itself;
`write` sorts and writes, `read` streams a key range back.  Objects know nothing of journals.
"""
