"""Loading: from source files to sorted objects and a draft.

- `sources` finds files; `opening` and `compression` give their bytes, unpacked and as UTF-8 text.
- `own_machine` recognizes this machine's own addresses, to which no redirect may lead.
- `places` decides which files an untrusted person may name.
- `detect` finds their format.  `formats` reads them a block at a time: `json` (with `json_frames`, `json_lists`,
  `json_structure`, `json_flat`), `csv` (with `csv_dialect`, `csv_lines`, `csv_types`, `csv_words`), `parquet`,
  `avro` and `orc`.
- `formats.python_values` builds columns from Python values if a block needs a closer look.  `declared` applies the
  types that a pool declares, `partitions` adds the fields of folders, and `checks` compares every record with the
  limits.
- `files` reads several files as one load; `builder` turns blocks into sorted objects; `preview` shows the result
  that a load would have.

The same code serves `lake load`, the library and the Spark workers.
"""
