"""Combining records with equal keys: the kinds of pools.

    append      all are kept
    upsert      the newest record of a key decides; if it is a delete marker, the key is absent
    aggregate   the records of a key are combined, field by field

`schemas.rule` has a pool's kind and the functions of its fields; `declared` reads and checks both.  `groups` finds
the records of one key in sorted tables, and `newest` and `aggregate` make one record of them.  `schemas.hidden`
names the columns in which an object keeps when each record was written.  Everything is pure and works on whole
Arrow tables that are sorted by key, then by sequence, then by ordinal.  Loads combine within an object, scans
between objects, compactions for good.
"""
