"""Conditions as people write them, and over records: which records a delete hides, which a scan gives.

    tailnum = 'N14228' and (dep_delay > 15 or dep_delay is null)

`records.conditions` has the structure, `lake_core.conditions` what it means for objects and keys.  This room has:

    parse, show        text and back; `check` reads it for a schema, and points at the word that is wrong
    evaluate, holds    a record batch or table at a time, by Arrow kernels
    alternatives       fewer conditions instead of many alternatives
    of_keys, of_range  the condition that means these keys, or this range of keys

The logic is SQL's: a comparison with null is null, and only true counts.  Values compare in the order of keys:
numbers exactly, with any types; NaN equals NaN and comes after all numbers; -0.0 equals 0.0; strings compare by
their UTF-8 bytes.  Numbers compare with decimals by the text of a double (`values.numbers`).  Values of different
classes (a string and a number) do not compare: `check` refuses them, and if a stored record has another class, the
answer is null.

A field with values of several classes is typed JSON, in which every value keeps its class.  `mixed` compares each
value as a field of its class would, so a condition means the same before and after a field becomes JSON.

Called by scans, deletes, and compactions that apply tombstones.
"""

from log_lake.where.alternatives import alternatives
from log_lake.where.check import check
from log_lake.where.evaluate import evaluate, holds
from log_lake.where.parse import parse
from log_lake.where.show import show

__all__ = ["alternatives", "check", "evaluate", "holds", "parse", "show"]
