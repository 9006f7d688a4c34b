"""The checkpoint agent: writes a checkpoint so that a journal opens quickly, and purges entries that it covers.

`policy` decides when a checkpoint is due and how far to purge (pure); `run` finds journals, does it and reports.
"""
