"""The tombstones agent: removes deleted records from the objects and retires finished tombstones.

`plan` decides what to search, rewrite and retire (pure); `run` does it and reports.
"""
