"""The ingest agent: loads source files, each batch as one transaction, each file once.

`policy` reads a pool's settings, `plan` decides which files make a batch and how tasks share them (both pure);
`run` finds the batches and `report` puts into words what was done.  `sources` looks for files, `parking`
remembers those that cannot be loaded, and `topics` reads Kafka.
"""
