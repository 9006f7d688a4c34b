"""The ingest agent: loads source files, each batch as one transaction, each file once.

`batches` decides which files go together, `units` how tasks share them (both pure).  `parking` remembers files that
cannot be loaded; `run` finds batches and reports.
"""
