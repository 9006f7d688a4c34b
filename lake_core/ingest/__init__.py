"""Taking records in: from landed files to sorted objects and a draft.

`sources` finds files, `formats` tells what they are, `ndjson`, `csvfile` and `parquetfile` read them a block
at a time, `values` builds columns from Python values where a block needs a closer look, `declared` applies
the types that a pool declares; `load` turns blocks into objects and objects into a draft.  The same code
serves `lake load`, the library and the Spark workers.
"""
