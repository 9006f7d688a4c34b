"""Names of fields: the names that readers see, and the stored names that objects have.

    lake fields logs rename user account

A rename rewrites nothing.  As in Delta's column mapping, each field has a *stored name*, which never changes: in
objects, statistics, tombstones, indexes and sums.  The state of the pool maps each name that differs from its
stored name to that stored name (`lake_core.history.renaming`).  So a past version shows its past names, and
branches, merges and old writers need nothing.

Names are translated only where they enter or leave the lake.  `FieldNames` is the translation of one state:

- in: columns and conditions of a plan (`reading.plan`), conditions of deletes, records of a load (`loading`);
- out: the schema of a revision, the tables of a scan.

All code in between uses only stored names: merging, compaction, tombstones, erasure, statistics.  A field is
the top level of a record; a field inside a record keeps its name (docs/fields.md).
"""
