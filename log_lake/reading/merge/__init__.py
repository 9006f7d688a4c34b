"""Merging the sorted streams of references into one order, in bounded memory.

`clusters` finds the references that must be merged, `streams` opens them, `combine.merge` merges them in windows.
`datafusion` merges local files, `insert_delta` a small delta with its bulk, `passes` very many small objects.
Batches that wait on disk are in `objects.spool`.
"""
