"""Conditions: which records a delete hides, which a scan gives.

    tailnum = 'N14228' and (dep_delay > 15 or dep_delay is null)

One small structure (`records.conditions`), and pure functions of it:

    parse, show        text and back; `check` reads it for a schema, and points at the word that is wrong
    evaluate, holds    a record batch or table at a time, by Arrow kernels
    alternatives       fewer conditions instead of many alternatives
    may_hold           whether some record of an object can fulfil the condition, by the object's statistics
    must_hold          whether every record of it does
    key_range          the range of all keys that can fulfil the condition
    top_level          the fields that the condition reads

The logic is SQL's: a comparison with null is null, and only true counts.  Values compare in the order of keys:
numbers exactly, with any types; NaN equals NaN and comes after all numbers; -0.0 equals 0.0; strings compare by
their UTF-8 bytes.  Numbers compare with decimals by the text of a double (`values.numbers`).  Values of different
classes (a string and a number) do not compare: `check` refuses them, and if a stored record has another class, the
answer is null.

A field with values of several classes is typed JSON, in which every value keeps its class.  `mixed` compares each
value as a field of its class would, so a condition means the same before and after a field becomes JSON.
`classwise` decides the answer of a comparison for a class.

Called by scans, deletes, and compactions that apply tombstones.
"""

from lake_core.conditions.alternatives import alternatives
from lake_core.conditions.check import check
from lake_core.conditions.evaluate import evaluate, holds
from lake_core.conditions.fields import top_level
from lake_core.conditions.keyrange import key_range_of
from lake_core.conditions.parse import parse
from lake_core.conditions.prune import may_hold, must_hold
from lake_core.conditions.show import show
from lake_core.records.conditions import And, Compare, Condition, In, IsNull, Not, Or

__all__ = [
    "And",
    "Compare",
    "Condition",
    "In",
    "IsNull",
    "Not",
    "Or",
    "alternatives",
    "check",
    "evaluate",
    "holds",
    "key_range_of",
    "may_hold",
    "must_hold",
    "parse",
    "show",
    "top_level",
]
