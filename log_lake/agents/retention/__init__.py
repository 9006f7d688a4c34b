"""The retention agent: expires old records, and deletes objects that are not needed any more.

    expire -> scan for orphans -> vacuum -> checkpoint and purge

`policy` reads a pool's settings `expire.*`, `plan` decides what expires (both pure); `expire` commits that, `run`
does all steps for the pools that have work, `report` puts it into words.  The steps after the first are those of
`log_lake.vacuum` and of the checkpoint agent.
"""
