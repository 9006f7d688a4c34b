"""The intervals agent: a run for an interval of time replaces exactly that interval of a pool, in one transaction.

`policy` reads a pool's settings, `plan` turns an interval into a key range and into a path (both pure); `run`
finds the files and `report` puts into words what was done.
"""
