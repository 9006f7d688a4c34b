"""The retention agent: expires old records, and deletes objects that are no longer needed.

    expire -> scan for orphans -> vacuum -> checkpoint and purge

`policy` reads a pool's settings `expire.*`, `plan` decides what expires (both pure); `expire` commits that,
`run` does all steps for the pools that have work, `report` has the words.  `log_lake.vacuum` and the checkpoint
agent have the steps after the first.
"""
