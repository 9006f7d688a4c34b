"""The intervals agent: a run for an interval of time replaces exactly that interval of a pool, in one transaction.

`policy` reads a pool's settings, `plan` checks what is asked and turns an interval into a path (both pure);
`run` finds the files, and `report` puts into words what was done.  `log_lake.coverage` turns an interval into a
range of keys.
"""
