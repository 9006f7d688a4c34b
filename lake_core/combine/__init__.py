"""How records with equal keys combine: the kinds of pools.

    append      all are kept
    upsert      the newest record of a key decides; if it is a delete marker, the key is absent
    aggregate   the records of a key are combined, field by field

`rule` says which kind a pool is and how its fields combine, `groups` finds the records of one key in sorted
tables, `newest` and `aggregate` make one record of them, `hidden` names the columns in which an object keeps when
each record was written.  Everything is pure and works on whole Arrow tables that are sorted by key, then by
sequence, then by ordinal.  Loads combine within an object, scans between objects, compactions for good.
"""

from lake_core.combine.rule import APPEND, Rule

__all__ = ["APPEND", "Rule"]
