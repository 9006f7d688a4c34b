"""Conditions: parses them, and evaluates them on records, to find what a delete hides and what a scan returns.

    tailnum = 'N14228' and (dep_delay > 15 or dep_delay is null)

`records.conditions` has the structure; `lake_core.conditions` applies conditions to objects and keys.  This room
has:

    parse, show        text and back; `check` checks it against a schema, and points at the wrong word
    evaluate, holds    evaluate a record batch or table at once, by Arrow kernels
    Many               evaluates many conditions at once, such as those of a thousand deletes
    of_keys, of_range  the condition that selects these keys, or this range of keys

The logic is SQL's: a comparison with null is null, and only true selects a record.  Values compare in the order
of keys: numbers exactly, whatever their types; NaN equals NaN and comes after all numbers; -0.0 equals 0.0;
strings compare by their UTF-8 bytes.  A double compares with a decimal as the decimal that prints like it
(`values.numbers`).  Values of different classes (a string and a number) do not compare: `check` refuses them,
and if a stored record has another class, the answer is null.

A field with values of several classes is typed JSON, in which every value keeps its class.  `mixed` compares
each value as a field of its class would, so a condition means the same before and after a field becomes JSON.

Called by scans, deletes, and compactions that apply tombstones.
"""

from log_lake.where.check import check
from log_lake.where.evaluate import evaluate, holds
from log_lake.where.many import Many
from log_lake.where.parse import parse
from log_lake.where.show import show

__all__ = ["Many", "check", "evaluate", "holds", "parse", "show"]
