"""Reads a condition from text.

    condition   and_ { or and_ }
    and_        not_ { and not_ }
    not_        not not_ | ( condition ) | comparison
    comparison  field OP value                          OP is one of = != <> < <= > >=
              | field [not] in ( value {, value} )
              | field [not] between value and value     both ends included
              | field is [not] null
    field       name { . name }                         names as `words` reads them, values as `literals`

Keywords may have any case.  `a.b` is read as one name, which `check` resolves; `"a"."b"` (one of them in
quotes) is always a field inside of a record.  `Parsed.leaves` keeps the positions of the words of each
comparison, so that `check` can point at them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import Value, encode_value
from lake_core.records.conditions import DEEPEST, OPS, And, Compare, Condition, In, IsNull, Not, Or, Path
from lake_core.values.numbers import Op
from log_lake.texts.value import (
    NotReadable,
    read_date,
    read_double,
    read_duration,
    read_string,
    read_time,
    read_timestamp,
)
from log_lake.where.literals import read_hex, read_number
from log_lake.where.words import KEYWORDS, Position, Word, fault, words

MOST_COMPARISONS = 1_000
"""The most comparisons of one condition.  An `in` counts as one, whatever the number of its values.

A scan evaluates each comparison for every batch of records: 1,000 comparisons take 33 ms for 1,000 records, and
90 ms for 100,000.  20,000 comparisons took 0.6 s for 1,000 records; the same values in one `in` take 0.3 s
once, and 2 ms for 100,000 records.
"""

_OPS: dict[str, Op] = {op: op for op in OPS} | {"<>": "!="}
_TYPED: dict[str, Callable[[str], Value]] = {
    "date": read_date,
    "timestamp": read_timestamp,
    "double": read_double,
    "time": read_time,
    "duration": read_duration,
}
_PLAIN: dict[str, Callable[[str], Value]] = {
    "text": read_string,
    "bytes": read_hex,
    "number": read_number,
}
_CONSTANTS: dict[str, Callable[[str], Value]] = {
    "null": lambda _: None,
    "true": lambda _: True,
    "false": lambda _: False,
}
_VALUES = "12, 'text', true, null, date '2026-01-31', timestamp '2026-01-31T12:00:00Z'"


@dataclass(frozen=True)
class ComparisonWords:
    """Where the words of one comparison are in the text; the positions of its values are in the order of the
    condition."""

    field: Position
    values: tuple[Position, ...] = ()


@dataclass(frozen=True)
class Parsed:
    """A condition, its text, and its comparisons from left to right."""

    condition: Condition
    text: str
    leaves: tuple[ComparisonWords, ...]


def parse(text: str) -> Condition:
    """Returns the condition that the text means.  Raises InvalidInput that points at the word."""
    return parse_with_positions(text).condition


def parse_with_positions(text: str) -> Parsed:
    """Returns the condition and the positions of its words.  Raises InvalidInput that points at the word."""
    parser = _Parser(text, words(text))
    condition = parser.any_of()
    parser.expect_end()
    return Parsed(condition, text, tuple(parser.leaves))


@dataclass
class _Parser:
    text: str
    words: list[Word]
    leaves: list[ComparisonWords] = field(default_factory=list)
    at: int = 0
    nested: int = 0

    @property
    def word(self) -> Word:
        return self.words[self.at]

    def take(self) -> Word:
        self.at += 1  # never past the end: nothing takes the last word
        return self.words[self.at - 1]

    def takes(self, *expected: str) -> bool:
        """Whether the next words are `expected` (signs, or keywords in lower case); if so, moves past them."""
        ahead = self.words[self.at : self.at + len(expected)]
        texts = [word.keyword or (word.text if word.kind == "sign" else "") for word in ahead]
        if texts != list(expected):
            return False
        self.at += len(expected)
        return True

    def wrong(self, expected: str) -> InvalidInput:
        return fault(self.text, self.word.position, f"expected {expected}")

    def expect(self, expected: str, *, description: str = "") -> None:
        if not self.takes(expected):
            raise self.wrong(description or expected)

    def expect_end(self) -> None:
        if self.word.kind != "end":
            raise self.wrong("`and`, `or` or the end")

    # --- and, or, not

    def any_of(self) -> Condition:
        return self._joined(Or, "or", self.all_of)

    def all_of(self) -> Condition:
        return self._joined(And, "and", self.negated)

    def _joined(self, kind: type[And | Or], keyword: str, member: Callable[[], Condition]) -> Condition:
        begin = self.word.position
        members = [member()]
        while self.takes(keyword):
            members.append(member())
        return members[0] if len(members) == 1 else self._made(kind, tuple(members), begin)

    def _made(self, kind: Callable[[Any], Condition], of: object, position: Position) -> Condition:
        try:
            return kind(of)
        except InvalidInput as error:
            raise self._too_deep(position) from error

    def _too_deep(self, position: Position) -> InvalidInput:
        return fault(self.text, position, f"nested more than {DEEPEST} levels deep")

    def negated(self) -> Condition:
        begin = self.word.position
        self.nested += 1
        if self.nested > 2 * DEEPEST:  # a level of the condition may be written as `not (`
            raise self._too_deep(begin)
        if self.takes("not"):
            condition = self._made(Not, self.negated(), begin)
        elif self.takes("("):
            condition = self.any_of()
            self.expect(")", description="`and`, `or` or `)`")
        else:
            condition = self.comparison()
        self.nested -= 1
        return condition

    # --- comparisons

    def comparison(self) -> Condition:
        path, position = self.path()
        if self.takes("is", "not", "null"):
            return Not(self._leaf(IsNull(path), position))
        if self.takes("is"):
            self.expect("null", description="`null` or `not null`")
            return self._leaf(IsNull(path), position)
        if self.takes("not", "in") or self.takes("not", "between"):
            self.at -= 1
            return Not(self._in_or_between(path, position))
        if self.word.keyword in ("in", "between"):
            return self._in_or_between(path, position)
        op = _OPS.get(self.word.text) if self.word.kind == "sign" else None
        if op is None:
            raise self.wrong("a comparison: = != < <= > >=, `in`, `between`, `is null`")
        self.take()
        value, value_place = self.value()
        return self._leaf(Compare(path, op, value), position, value_place)

    def _in_or_between(self, path: Path, position: Position) -> Condition:
        if self.takes("between"):
            low, low_place = self.value()
            self.expect("and")
            high, high_place = self.value()
            lower = self._leaf(Compare(path, ">=", low), position, low_place)
            return And((lower, self._leaf(Compare(path, "<=", high), position, high_place)))
        self.expect("in")
        self.expect("(")
        members = [self.value()]
        while self.takes(","):
            members.append(self.value())
        self.expect(")", description="`,` or `)`")
        places = dict(members)
        values = tuple(sorted(places))
        return self._leaf(In(path, values), position, *(places[v] for v in values))

    def _leaf(self, condition: Condition, field: Position, *values: Position) -> Condition:
        if len(self.leaves) == MOST_COMPARISONS:
            what = (
                f"more than {MOST_COMPARISONS:,} comparisons; for many values of one field write `in (a, b)`"
            )
            raise fault(self.text, field, what)
        self.leaves.append(ComparisonWords(field, values))
        return condition

    def path(self) -> tuple[Path, Position]:
        begin = self.at
        parts = [self._name(KEYWORDS)]
        while self.takes("."):
            parts.append(self._name(frozenset()))
        taken = self.words[begin : self.at]
        position = Position(taken[0].position.start, taken[-1].position.end)
        if not any(word.kind == "quoted" for word in taken):
            return (".".join(parts),), position
        if len(parts) > DEEPEST:
            raise self._too_deep(position)
        return tuple(parts), position

    def _name(self, reserved: frozenset[str]) -> str:
        word = self.word
        if word.kind == "quoted":
            self.take()
            return word.text[1:-1].replace('""', '"')
        if word.kind == "name" and word.keyword not in reserved:
            self.take()
            return word.text
        raise self.wrong(
            "a field" + ("; a text stands right of the comparison" if word.kind == "text" else "")
        )

    def value(self) -> tuple[bytes, Position]:
        """Reads a value. Returns it in its encoding, and its position."""
        begin = self.word.position.start
        read, text = self._value()
        position = Position(begin, self.words[self.at - 1].position.end)
        try:
            return encode_value(read(text)), position
        except NotReadable as error:
            raise fault(self.text, position, str(error)) from error

    def _value(self) -> tuple[Callable[[str], Value], str]:
        """Consumes the words of a value.  Returns the function that reads its text, and the text."""
        word, after = self.word, self.words[min(self.at + 1, len(self.words) - 1)]
        if word.keyword in _TYPED and after.kind == "text":
            self.at += 2
            return _TYPED[word.keyword], _unquoted(after)
        read = _CONSTANTS.get(word.keyword) or _PLAIN.get(word.kind)
        if read is None:
            quoted = "; a text stands in single quotes" if word.kind in ("name", "quoted") else ""
            raise self.wrong(f"a value ({_VALUES}){quoted}")
        self.take()
        return read, _unquoted(word)


def _unquoted(word: Word) -> str:
    if word.kind == "text":
        return word.text[1:-1].replace("''", "'")
    return word.text[2:-1] if word.kind == "bytes" else word.text
