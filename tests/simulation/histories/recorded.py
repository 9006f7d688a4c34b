"""A history: the operations, what each was told and when, and the reads.  Times are counts, not seconds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

Values = list[int]


@dataclass
class Part:
    """What an operation does in one pool.  All values of a history differ.

    `adds` are records that nobody hides; `removes` were there from the begin; `registers` are keys with one value,
    which others write too: the newest is shown.
    """

    adds: set[int] = field(default_factory=set)
    removes: set[int] = field(default_factory=set)
    registers: dict[int, int] = field(default_factory=dict)


@dataclass
class Operation:
    """A transaction over pools, or a write to one pool.

    Each answer is kept, with its time: several processes may commit one transaction, and all must be told the same.
    """

    number: int
    begun: int
    is_transaction: bool
    token: str = ""
    parts: dict[str, Part] = field(default_factory=dict)
    acknowledged: list[int] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)

    def part(self, pool: str) -> Part:
        return self.parts.setdefault(pool, Part())

    def pools(self) -> set[str]:
        """Those in which it changes something."""
        return {name for name, part in self.parts.items() if part.adds or part.removes or part.registers}


@dataclass
class Seen:
    """What a read shows of one pool."""

    records: Values
    registers: dict[int, Values]


@dataclass
class Read:
    """Of several pools at one moment.  `is_past`: of a past time, where only transactions are whole."""

    reader: str
    begun: int
    ended: int
    pools: dict[str, Seen]
    is_past: bool = False


@dataclass
class History:
    """All of one seed."""

    initial: dict[str, set[int]] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    _times: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _values: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def now(self) -> int:
        """Later than all times before."""
        return next(self._times)

    def value(self) -> int:
        """One that nobody has had."""
        return next(self._values)

    def begin(self, *, is_transaction: bool, token: str = "") -> Operation:
        operation = Operation(len(self.operations), self.now(), is_transaction, token)
        self.operations.append(operation)
        return operation

    def acknowledge(self, operation: Operation) -> None:
        """Somebody was told that it is committed."""
        operation.acknowledged.append(self.now())

    def refuse(self, operation: Operation, why: str) -> None:
        """Somebody was told that it is not committed, and never will be."""
        operation.refused.append((self.now(), why))
