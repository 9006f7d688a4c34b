"""Combines records with equal keys, by the kind of the pool.

    append      keeps all records
    upsert      keeps the newest record of a key; if that is a delete marker, the key is absent
    aggregate   combines the records of a key, field by field

`schemas.rule` has a pool's kind and the functions of its fields; `declared` reads and checks both.  `groups`
finds the records of one key in sorted tables, and `newest` and `aggregate` make one record of them.
`schemas.hidden` names the columns in which an object stores when each record was written.  Everything is pure
and works on whole Arrow tables, sorted by key, then by sequence, then by ordinal.  A load combines the records
of one object, a scan those of several objects, and a compaction stores the result.
"""
