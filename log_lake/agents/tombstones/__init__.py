"""The tombstones agent: removes deleted records from the objects, and retires finished tombstones.

`policy` says which tombstones are due at a time, `plan` what to search and rewrite for them (both pure); `run`
does it and `report` puts it into words.
"""
