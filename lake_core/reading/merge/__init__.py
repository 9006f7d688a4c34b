"""Merging the sorted streams of references into one order, in bounded memory.

`clusters` tells what must be merged, `streams` opens references, `merge` merges them.  `datafusion` does it for
files on this machine, `insert_delta` for few records over many, `passes` for very many small objects.  `spool`
holds batches on disk.
"""
