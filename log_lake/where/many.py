"""Evaluates many conditions over records at once, such as those of a thousand deletes.

Each condition has a number, its *mark*; each record gets the greatest mark among the conditions that it
fulfils.  Testing the conditions in turn would take a thousand comparisons per record.  Instead:

- equality tests of a field become one look-up in a set,
- ranges of a field become segments, and one binary search finds a record's segment,
- for an `and`, one member (the *guide*) finds the few records that may fulfil the whole; then conditions of one
  shape are evaluated together (`shapes`),
- conditions that fit none of these, or are few, are evaluated one by one.

The types of the columns decide how a condition is evaluated, so `Many` sorts its conditions once per schema.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.conditions.classwise import NULL_VALUE, among
from lake_core.conditions.fields import find_field
from lake_core.keys.encoding import key_class
from lake_core.records.conditions import And, Compare, Condition, In, Or, Path
from lake_core.values.types import is_json
from log_lake.where.evaluate import Column, column_at, exactly, holds
from log_lake.where.segments import segments
from log_lake.where.shapes import Paired, own_comparison

FEW = 4
"""The most conditions of a kind that are evaluated one by one: a kernel then costs less than a search."""

MOST_LAYERS = 16
"""The most guides that may overlap at one value.  Conditions beyond that are evaluated one by one."""

Marks: TypeAlias = npt.NDArray[np.int64]
"""For each record a mark, or 0 if no condition holds for it."""

Marked: TypeAlias = tuple[Condition, int]


class Many:
    """Conditions, each with a positive number, its mark. The mark of a record tells the caller which condition the
    record fulfils."""

    def __init__(self, conditions: Iterable[Marked]) -> None:
        self._conditions = tuple(conditions)
        self._ways = lru_cache(maxsize=4)(self._sorted)

    def newest(self, records: pa.Table) -> Marks:
        """Returns for each record the greatest mark among the conditions that hold for it, or 0."""
        greatest = np.zeros(records.num_rows, np.int64)
        for way in self._ways(records.schema):
            way.into(greatest, records)
        return greatest

    def _sorted(self, schema: pa.Schema) -> tuple[_Way, ...]:
        equal: dict[Path, list[Marked]] = defaultdict(list)
        within: dict[Path, list[tuple[_Interval, Marked]]] = defaultdict(list)
        guided: dict[Path, list[tuple[_Interval | pa.Scalar, Marked]]] = defaultdict(list)
        mixed: dict[tuple[Path, int], list[Compare | In]] = defaultdict(list)
        alone: list[Marked] = []
        for condition, mark in _spread(self._conditions):
            one = condition, mark
            if isinstance(condition, Compare | In) and _is_set(condition, schema):
                equal[condition.field].append(one)
            elif isinstance(condition, Compare | In) and _is_mixed(condition, schema):
                mixed[condition.field, mark].append(condition)
            elif (exact := _exact_interval(condition, schema)) is not None:
                within[exact[0]].append((exact[1], one))
            elif (guide := _guide(condition, schema)) is not None:
                guided[guide[0]].append((guide[1], one))
            else:
                alone.append(one)
        alone += [(united, mark) for (_, mark), leaves in mixed.items() for united in _united(leaves)]
        ways: list[_Way] = []
        for path, marked in equal.items():
            ways.append(_Set.of(path, marked, schema))
        for path, spans in within.items():
            if len(spans) <= FEW:
                alone += [one for _, one in spans]
            else:
                ways.append(_Segments.of(path, [(interval, mark) for interval, (_, mark) in spans]))
        for path, guides in guided.items():
            layers, rest = _layers(guides) if len(guides) > FEW else ([], [one for _, one in guides])
            alone += rest
            ways += [_Layer.of(path, layer, schema) for layer in layers]
        return (*ways, *(_Alone(condition, mark) for condition, mark in alone))


def _spread(conditions: Iterable[Marked]) -> Iterator[Marked]:
    """Yields each condition once, with its greatest mark; an `or` is split into its members."""
    greatest: dict[Condition, int] = {}
    for condition, mark in conditions:
        for member in _members(condition):
            greatest[member] = max(mark, greatest.get(member, 0))
    return iter(greatest.items())


def _members(condition: Condition) -> Iterator[Condition]:
    if isinstance(condition, Or):
        for member in condition.of:
            yield from _members(member)
    else:
        yield condition


class _Way(Protocol):
    """One way to evaluate some of the conditions."""

    def into(self, greatest: Marks, records: pa.Table) -> None:
        """Raises the mark of each record for which one of the conditions holds."""


@dataclass(frozen=True)
class _Alone(_Way):
    condition: Condition
    mark: int

    def into(self, greatest: Marks, records: pa.Table) -> None:
        rows = np.flatnonzero(holds(self.condition, records).to_numpy(zero_copy_only=False))
        greatest[rows] = np.maximum(greatest[rows], np.int64(self.mark))


# Equality


def _is_set(leaf: Compare | In, schema: pa.Schema) -> bool:
    """Whether a look-up in a set answers the comparison: it must be an equality test, of a plain type whose equal
    values have equal bits."""
    field, rest = find_field(schema, leaf.field)
    if field is None or rest or is_json(field) or pa.types.is_nested(field.type):
        return False
    return not pa.types.is_floating(field.type) and (isinstance(leaf, In) or leaf.op == "=")


def _is_mixed(leaf: Compare | In, schema: pa.Schema) -> bool:
    """Whether the comparison is an equality test of values in JSON, which may have several classes."""
    field, _ = find_field(schema, leaf.field)
    return field is not None and is_json(field) and (isinstance(leaf, In) or leaf.op == "=")


def _united(leaves: Sequence[Compare | In]) -> list[Condition]:
    """Joins several equality tests of a field into one look-up; returns nothing if their only value is null."""
    values = {value for leaf in leaves for value in (leaf.values if isinstance(leaf, In) else (leaf.value,))}
    readings = {value for leaf in leaves for value in leaf.readings}
    some = tuple(sorted(values - {NULL_VALUE}))
    return [In(leaves[0].field, some, tuple(sorted(readings)))] if some else []


@dataclass(frozen=True)
class _Set(_Way):
    """The values of a look-up, with the greatest mark of each."""

    field: Path
    values: pa.Array
    marks: Marks

    @classmethod
    def of(cls, path: Path, conditions: Iterable[Marked], schema: pa.Schema) -> _Set:
        field, _ = find_field(schema, path)
        assert field is not None
        marks: dict[bytes, int] = {}
        for condition, mark in conditions:
            assert isinstance(condition, Compare | In)
            own = among(condition, key_class(field.type))
            if isinstance(own, Compare | In):
                for value in (own.value,) if isinstance(own, Compare) else own.values:
                    marks[value] = max(mark, marks.get(value, 0))
        scalars = {
            scalar: mark
            for value, mark in marks.items()
            if value != NULL_VALUE and (scalar := exactly(value, field.type)) is not None
        }
        return cls(path, pa.array(list(scalars), field.type), np.array(list(scalars.values()), np.int64))

    def into(self, greatest: Marks, records: pa.Table) -> None:
        if len(self.values):
            places = pc.index_in(column_at(records, self.field), value_set=self.values)
            _raise(greatest, _numpy(pc.fill_null(places, -1)), self.marks)


def _raise(greatest: Marks, places: npt.NDArray[Any], marks: Marks) -> None:
    """Raises the marks of those records whose index in `places` is not negative."""
    rows = np.flatnonzero(places >= 0)
    greatest[rows] = np.maximum(greatest[rows], marks[places[rows]])


# Ranges


@dataclass(frozen=True)
class _Interval:
    """The numbers from `low` to `high`, both inclusive; None means no bound."""

    low: Any
    high: Any

    def intersect(self, other: _Interval) -> _Interval:
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return _Interval(max(lows, default=None), min(highs, default=None))

    @property
    def is_empty(self) -> bool:
        return self.low is not None and self.high is not None and self.low > self.high


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)


def _after(value: Any, *, by: int) -> Any:
    return np.nextafter(value, np.inf * by) if isinstance(value, float) else value + by


def _interval(leaf: Condition, schema: pa.Schema) -> _Interval | None:
    """Returns the numbers for which a comparison with a number is true; None for any other condition."""
    if not isinstance(leaf, Compare) or len(leaf.field) > 1 or leaf.op == "!=":
        return None
    meant = own_comparison(leaf, schema)
    if meant is None or not _is_number(meant[1].type):
        return None
    op, value = meant[0], _number(meant[1])
    if isinstance(value, float) and np.isinf(value):  # NaN comes after it, and no number does
        return None
    return {
        "=": _Interval(value, value),
        "<": _Interval(None, _after(value, by=-1)),
        "<=": _Interval(None, value),
        ">": _Interval(_after(value, by=1), None),
        ">=": _Interval(value, None),
    }[op]


def _number(scalar: pa.Scalar) -> Any:
    return _numpy(_as_numbers(pa.array([scalar], scalar.type)))[0].item()


def _exact_interval(condition: Condition, schema: pa.Schema) -> tuple[Path, _Interval] | None:
    """Returns a field and an interval if the condition is true for exactly the values of the field in it."""
    members = condition.of if isinstance(condition, And) else (condition,)
    fields = {member.field if isinstance(member, Compare) else () for member in members}
    intervals = [_interval(member, schema) for member in members] if len(fields) == 1 else []
    bounded = [interval for interval in intervals if interval is not None]
    if not bounded or len(bounded) < len(intervals):
        return None
    interval = bounded[0]
    for other in bounded[1:]:
        interval = interval.intersect(other)
    return fields.pop(), interval


def _numbers(column: Column) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """Returns the column as numbers, and which of them are valid; None if all are valid."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    valid = _numpy(array.is_valid()) if array.null_count else None
    return _numpy(_as_numbers(array)), valid


def _as_numbers(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_floating(kind):
        array = array.cast(pa.float64())
    elif pa.types.is_temporal(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return array.fill_null(0) if array.null_count else array


def _numpy(array: Column) -> npt.NDArray[Any]:
    if isinstance(array, pa.ChunkedArray):
        return array.to_numpy()
    return array.to_numpy(zero_copy_only=False)


@dataclass(frozen=True)
class _Segments(_Way):
    """The bounds of segments of numbers, and the mark of each segment."""

    field: Path
    bounds: list[Any]
    marks: Marks
    """One mark more than there are bounds: the first one is for values below all bounds."""

    @classmethod
    def of(cls, path: Path, intervals: Iterable[tuple[_Interval, int]]) -> _Segments:
        spans = [
            (
                -np.inf if interval.low is None else interval.low,
                None if interval.high is None else _after(interval.high, by=1),
                mark,
            )
            for interval, mark in intervals
            if not interval.is_empty
        ]
        bounds, marks = segments(spans)
        below = marks.pop(0) if bounds and bounds[0] == -np.inf else 0
        return cls(path, bounds[len(bounds) - len(marks) :], np.array([below, *marks], np.int64))

    def into(self, greatest: Marks, records: pa.Table) -> None:
        values, valid = _numbers(column_at(records, self.field))
        marks = self.marks[_search(self.bounds, values)]
        np.maximum(greatest, marks if valid is None else np.where(valid, marks, np.int64(0)), out=greatest)


def _search(bounds: list[Any], values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Returns for each value how many bounds are at or below it; NaN is above all bounds."""
    if values.dtype.kind == "f":
        return np.searchsorted(np.array(bounds, np.float64), values, side="right")
    least, greatest = np.iinfo(values.dtype).min, np.iinfo(values.dtype).max
    below = sum(bound <= least for bound in bounds)
    inside = [bound for bound in bounds[below:] if bound <= greatest]
    return below + np.searchsorted(np.array(inside, values.dtype), values, side="right")


# Guides


def _guide(condition: Condition, schema: pa.Schema) -> tuple[Path, _Interval | pa.Scalar] | None:
    """Returns the member of an `and` that finds its few records: an equality, or else an interval with two ends;
    None if there is no such member."""
    if not isinstance(condition, And):
        return None
    intervals: dict[Path, _Interval] = {}
    for member in condition.of:
        if not isinstance(member, Compare) or len(member.field) > 1:
            continue
        interval = _interval(member, schema)
        if interval is not None:
            earlier = intervals.get(member.field)
            intervals[member.field] = interval if earlier is None else interval.intersect(earlier)
        elif _is_set(member, schema) and (meant := own_comparison(member, schema)) is not None:
            return member.field, meant[1]
    closed = {p: i for p, i in intervals.items() if i.low is not None and i.high is not None}
    return min(closed.items(), key=lambda item: item[1].high - item[1].low, default=None)


_Guided: TypeAlias = tuple[_Interval | pa.Scalar, Marked]


def _layers(guides: Sequence[_Guided]) -> tuple[list[list[_Guided]], list[Marked]]:
    """Sorts the guides into layers, so that in one layer a value has at most one guide.  Returns the layers, and
    the conditions that fit into none."""
    rest: list[Marked] = []
    layers: list[list[_Guided]] = []
    ends: list[Any] = []  # of the last interval of each layer
    intervals = [(g, one) for g, one in guides if isinstance(g, _Interval) and not g.is_empty]
    for interval, one in sorted(intervals, key=lambda item: item[0].low):
        place = next((at for at, end in enumerate(ends) if end < interval.low), len(ends))
        if place == MOST_LAYERS:
            rest.append(one)
        elif place == len(ends):
            ends.append(interval.high)
            layers.append([(interval, one)])
        else:
            ends[place] = interval.high
            layers[place].append((interval, one))
    by_value: dict[pa.Scalar, list[_Guided]] = defaultdict(list)
    for guide, one in guides:
        if isinstance(guide, pa.Scalar):
            by_value[guide].append((guide, one))
    deepest = max(map(len, by_value.values()), default=0)
    for depth in range(min(deepest, MOST_LAYERS)):
        layers.append([same[depth] for same in by_value.values() if depth < len(same)])
    rest += [one for same in by_value.values() for _, one in same[MOST_LAYERS:]]
    return layers, rest


@dataclass(frozen=True)
class _Layer(_Way):
    """Conditions, at most one for each value of a field.

    `paired` and `marks` are those of each condition, in the order of the guides.
    """

    field: Path
    equal: pa.Array | None
    """The values of the guides; None if they are intervals."""
    intervals: tuple[tuple[Any, Any], ...]
    """The first and the last number of each guide, ascending."""
    paired: Paired
    marks: Marks

    @classmethod
    def of(cls, path: Path, layer: Sequence[_Guided], schema: pa.Schema) -> _Layer:
        first, _ = layer[0]
        return cls(
            path,
            pa.array([guide for guide, _ in layer], first.type) if isinstance(first, pa.Scalar) else None,
            tuple((guide.low, guide.high) for guide, _ in layer if isinstance(guide, _Interval)),
            Paired.of([condition for _, (condition, _) in layer], schema),
            np.array([mark for _, (_, mark) in layer], np.int64),
        )

    def into(self, greatest: Marks, records: pa.Table) -> None:
        which = self._guided(column_at(records, self.field))
        rows = np.flatnonzero(which >= 0)
        if len(rows):
            hit = rows[self.paired.holding(records, rows, which[rows])]
            greatest[hit] = np.maximum(greatest[hit], self.marks[which[hit]])

    def _guided(self, column: Column) -> npt.NDArray[np.int64]:
        """Returns for each record the index of the condition that may hold, or -1."""
        if self.equal is not None:
            places = pc.fill_null(pc.index_in(column, value_set=self.equal), -1)
            return _numpy(places).astype(np.int64)
        values, valid = _numbers(column)
        lows, highs = (np.array(ends, values.dtype) for ends in zip(*self.intervals, strict=True))
        places = np.searchsorted(lows, values, side="right") - 1
        inside = (places >= 0) & (values <= highs[places])
        return np.where(inside if valid is None else inside & valid, places, -1)
