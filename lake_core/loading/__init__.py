"""Taking records in: from landed files to sorted objects and a draft.

- `sources` finds files; `opening` and `compression` give their bytes, unpacked and as UTF-8 text.
- `formats` tells what they are.  `ndjson` (with `jsonframes`), `csvfile` (with `csv_dialect`, `csv_lines`,
  `csv_types`, `csv_words`), `parquetfile`, `avrofile` and `orcfile` read them a block at a time.
- `values` builds columns from Python values where a block needs a closer look, `declared` applies the types that
  a pool declares, `partitions` adds the fields of folders, `checks` holds every record to the limits.
- `files` reads several files as one load; `load` turns blocks into objects and objects into a draft; `preview` only
  looks.

The same code serves `lake load`, the library and the Spark workers.
"""
