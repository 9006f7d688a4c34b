"""Taking records in: from landed files to sorted objects and a draft.

- `sources` finds files; `opening` and `compression` give their bytes, unpacked and as UTF-8 text.
- `detect` tells what they are.  In `formats`, `json` (with `json_frames`, `json_flat`), `csv` (with `csv_dialect`,
  `csv_lines`, `csv_types`, `csv_words`), `parquet`, `avro` and `orc` read them a block at a time.
- `values` builds columns from Python values where a block needs a closer look, `declared` applies the types that
  a pool declares, `partitions` adds the fields of folders, `checks` holds every record to the limits.
- `files` reads several files as one load; `load` turns blocks into objects and objects into a draft; `preview` only
  looks.

The same code serves `lake load`, the library and the Spark workers.
"""
