"""The figures of one field of a revision: records, nulls, bounds, distinct values, quantiles; with their errors.

A rule `index.NAME=sketch(FIELD)` gives each object a sketch.  A sketch counts if it says what readers see: no
delete, `age_off`, delete marker or other object of the same keys touches the records (`known`).  Each other object
is read, and so is an object without a sketch.  The figures name these objects, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.history import Reference
from lake_core.keys.encoding import Value
from lake_core.store import Store
from log_lake.indexes.gathering import SketchedValues
from log_lake.indexes.hashes import indexed_field
from log_lake.indexes.lookup import IndexAnswer, in_threads, read_sketch
from log_lake.indexes.rule import SKETCH, IndexRule
from log_lake.indexes.sketch import DISTINCT_ERROR, Sketch, united
from log_lake.objects.statistics import exact_value
from log_lake.reading.known import known_references
from log_lake.reading.plan import ScanPlan
from log_lake.reading.revision import Revision

SHARES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""The quantiles that are given unless the caller asks for others."""

INLINED, NO_RULE, OTHER = (
    "it lies in the journal",
    "no rule makes sketches of the field",
    "its sketch is of other records",
)
"""Why an object is read, beside those of `known` and `IndexAnswer`."""


@dataclass(frozen=True)
class FieldFigures:
    """The figures of a field; `low` and `high` are None if no record has a value, or if they are not known.

    `distinct`: the distinct values that are not null.  `distinct_error`: the standard error as a share of it, 0.0
    if it is exact.  `quantiles`: values by share.  `rank_error`: the greatest distance of a quantile's rank
    from the wanted rank, as a share of all values.  A type without a fixed size has no quantiles.

    `sketches`: objects whose sketch counted.  `read`: the other objects, each with the reason.
    """

    version: int
    name: str
    records: int
    nulls: int
    low: Value
    high: Value
    distinct: int
    distinct_error: float
    quantiles: Mapping[float, Value] = field(default_factory=dict)
    rank_error: float = 0.0
    sketches: int = 0
    read: Mapping[str, str] = field(default_factory=dict)

    @property
    def reasons(self) -> Mapping[str, int]:
        """Why objects were read, and how many."""
        return Counter(self.read.values())


def top_level_of(revision: Revision, written: str) -> str:
    """Returns the field of the records in which the field lies.  Raises InvalidInput."""
    indexed = indexed_field(revision.schema, written)
    if indexed is None:
        raise InvalidInput(
            f"field {written!r} of pool {revision.config.name!r}: it does not exist, or its type has no order; "
            "lake show says which fields there are"
        )
    return indexed[0][0]


def figures_of(
    revision: Revision,
    plan: ScanPlan,
    written: str,
    store: Store,
    *,
    read: Callable[[ScanPlan], Iterable[pa.Table]],
    shares: Sequence[float],
) -> FieldFigures:
    """Returns the figures of a field; `plan` must be the plan of its column for all records, and `read` yields
    the records of a plan.  Raises InvalidInput, and what `read` raises."""
    if wrong := [share for share in shares if not 0 <= share <= 1]:
        raise InvalidInput(f"quantile {wrong[0]}: give shares from 0 to 1 (inclusive)")
    division = known_references(plan)
    reasons = dict(division.read)
    sketches, without = _sketches(revision, division.references, written, store)
    reasons |= without
    if reasons:
        references = tuple(sorted(reasons, key=lambda reference: reference.order))
        sketches.append(_sketch_of(revision, written, read(replace(plan, references=references))))
    whole = united(sketches)
    quantiles = {share: _value(bound) for share in shares if (bound := whole.quantile(share)) is not None}
    return FieldFigures(
        revision.version,
        written,
        whole.records,
        whole.nulls,
        _value(whole.low),
        _value(whole.high),
        whole.distinct,
        0.0 if whole.is_exact else DISTINCT_ERROR,
        quantiles,
        whole.rank_error,
        len(plan.references) - len(reasons),
        {reference.object: why for reference, why in reasons.items()},
    )


def _value(bound: bytes) -> Value:
    return exact_value(bound) if bound else None


def _sketches(
    revision: Revision, references: Sequence[Reference], written: str, store: Store
) -> tuple[list[Sketch], dict[Reference, str]]:
    """Returns the sketches of the references that have the field, and why others must be read."""
    rule = _rule_of(revision, written)
    if rule is None:
        return [], {reference: INLINED if reference.data else NO_RULE for reference in references}
    read: dict[Reference, str] = {}
    asked: list[Reference] = []
    sketches: list[Sketch] = []
    for reference in references:
        if indexed_field(revision.state.schema(reference.schema), rule.field) is None:
            sketches.append(Sketch(reference.records, reference.records))  # none of its records has the field
        elif reference.data:
            read[reference] = INLINED
        else:
            asked.append(reference)
    pool_id = revision.config.id
    answers = in_threads(store, lambda reference: read_sketch(store, pool_id, reference.object, rule), asked)
    for reference, sketch in zip(asked, answers, strict=True):
        if isinstance(sketch, IndexAnswer):
            read[reference] = sketch.value
        elif sketch.records != reference.records:
            read[reference] = OTHER
        else:
            sketches.append(sketch)
    return sketches, read


def _rule_of(revision: Revision, written: str) -> IndexRule | None:
    """Returns the rule that makes sketches of the field, with the stored name of its field."""
    rules = revision.settings.index_rules if not revision.sub_pool else ()
    own = indexed_field(revision.schema, written)
    same = [
        rule
        for rule in rules
        if rule.kind == SKETCH
        and (one := indexed_field(revision.schema, rule.field)) is not None
        and own is not None
        and one[0] == own[0]
    ]
    return revision.names.stored_rule(same[0]) if same else None


def _sketch_of(revision: Revision, written: str, tables: Iterable[pa.Table]) -> Sketch:
    indexed = indexed_field(revision.schema, written)
    assert indexed is not None  # `top_level_of` refused others
    gathered = SketchedValues(*indexed)
    for table in tables:
        gathered.add(table, [table.num_rows])
    return gathered.sketch()
