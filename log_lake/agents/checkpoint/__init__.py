"""The checkpoint agent: writes a checkpoint so that a journal opens quickly, and purges entries that it covers.

`policy` reads a pool's settings, `plan` decides whether a checkpoint is due and how far to purge (both pure); `run`
does it and `report` puts it into words.
"""
