"""Decides without reading records which objects and keys may match a condition.

Deletes store the structure of a condition (`records.conditions`).

    may_hold           whether some record of an object may match the condition, by the object's statistics
    must_hold          whether every record of it matches
    top_level          the fields that the condition reads
    classwise          the result of a comparison with values of another class

The logic is SQL's: a comparison with null is null, and only true counts.  Values compare in the order of keys.
`log_lake.where` reads conditions from text and evaluates them over records.  Called by the history's tombstones
and by plans of reads.
"""

from lake_core.conditions.fields import top_level
from lake_core.conditions.prune import may_hold, must_hold
from lake_core.records.conditions import And, Called, Compare, Condition, In, IsNull, Not, Or, Unless

__all__ = [
    "And",
    "Called",
    "Compare",
    "Condition",
    "In",
    "IsNull",
    "Not",
    "Or",
    "Unless",
    "may_hold",
    "must_hold",
    "top_level",
]
