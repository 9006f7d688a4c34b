"""What no order of a history explains: half of an operation, one that is lost, doubled, refused and seen; a cycle.

Dependencies, as Elle has them: a read comes after the operations that it shows, and before those that it does not;
of two operations that write one register and are both visible, the one that is shown comes last; and what had ended
before something began comes before it.

A read of several pools is a part for each pool here.  That each transaction is in all of the parts or in none is
checked apart.  The documentation promises no more: two single writes, or two transactions without a pool in common,
may be seen within one read in another order than they were committed in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tests.simulation.histories.recorded import History, Operation, Read
from tests.simulation.truth import Violation

Node = tuple[str, int, str]
"""`("op", number, "")`, or `("read", number, pool)`."""

NEVER = 1 << 60


def check(history: History) -> Counter[str]:
    """How much was looked at.  Raises Violation."""
    found = _Found(history)
    for number, read in enumerate(history.reads):
        found.look(number, read)
    for operation in history.operations:
        _check_answers(operation)
    _check_tokens(history, found.landed)
    edges = found.dependencies()
    if cycle := _cycle(edges):
        raise Violation(f"a cycle: {' -> '.join(map(_named, cycle))}")
    return Counter(
        {
            "operations": len(history.operations),
            "transactions seen": sum(
                o.is_transaction for o in history.operations if o.number in found.landed
            ),
            "reads": len(history.reads),
            "dependencies": sum(map(len, edges.values())),
            "one write before another": found.overwritten,
        }
    )


@dataclass
class _Found:
    """What the reads show."""

    history: History
    visible: dict[tuple[int, int], bool] = field(default_factory=dict)
    """By read and operation; pairs of which nothing is known are left out."""
    landed: set[int] = field(default_factory=set)
    overwritten: int = 0

    def look(self, number: int, read: Read) -> None:
        """One read, by itself."""
        for pool, seen in read.pools.items():
            self._look_at_pool(read, pool, seen.records)
            for key, values in seen.registers.items():
                if len(values) > 1:
                    raise Violation(f"{read.reader} sees {values} in one key, {key} of {pool}")
        for operation in self.history.operations:
            shown = self._shows(read, operation)
            if shown is None:
                continue
            self.visible[number, operation.number] = shown
            if shown:
                self.landed.add(operation.number)
            _check_visible(read, operation, shown=shown)

    def _look_at_pool(self, read: Read, pool: str, records: list[int]) -> None:
        if doubled := [value for value, times in Counter(records).items() if times > 1]:
            raise Violation(f"{read.reader} sees {doubled} of {pool} twice")
        operations, initial = self.history.operations, self.history.initial[pool]
        parts = [operation.parts[pool] for operation in operations if pool in operation.parts]
        if unknown := set(records) - initial.union(*(part.adds for part in parts)):
            raise Violation(f"{read.reader} sees {sorted(unknown)} in {pool}, which nobody wrote")
        kept = initial.difference(*(part.removes for part in parts))
        if lost := kept - set(records):
            raise Violation(f"{read.reader} does not see {sorted(lost)} in {pool}, which nobody removed")

    def _shows(self, read: Read, operation: Operation) -> bool | None:
        """Whether a read shows an operation; None if nothing tells."""
        marks: dict[str, bool] = {}
        for pool, part in operation.parts.items():
            if pool not in read.pools:
                continue
            seen, records = read.pools[pool], set(read.pools[pool].records)
            marks |= {f"{pool} has {value}": value in records for value in sorted(part.adds)}
            marks |= {f"{pool} lacks {value}": value not in records for value in sorted(part.removes)}
            for key, value in part.registers.items():
                if value in seen.registers.get(key, ()):  # otherwise a later write may hide it
                    marks[f"{pool} shows {value}"] = True
        if len(set(marks.values())) > 1:
            raise Violation(f"{read.reader} sees half of operation {operation.number}: {marks}")
        return next(iter(marks.values()), None)

    def dependencies(self) -> dict[Node, set[Node]]:
        """What comes before what.  Operations that no read shows depend on nothing."""
        edges: dict[Node, set[Node]] = defaultdict(set)
        times: dict[Node, tuple[int, int]] = {}
        for number, read in enumerate(self.history.reads):
            if read.is_past:
                continue
            for pool in read.pools:
                me = ("read", number, pool)
                times[me] = read.begun, read.ended
                for operation in self.history.operations:
                    shown = self.visible.get((number, operation.number))
                    if pool not in operation.parts or shown is None:
                        continue
                    other = ("op", operation.number, "")
                    edges[other if shown else me].add(me if shown else other)
                self._registers(number, read, pool, edges)
        for operation in self.history.operations:
            if operation.number in self.landed:
                ended = min(operation.acknowledged, default=NEVER)
                times["op", operation.number, ""] = operation.begun, ended
        for one, (_, ended) in times.items():
            edges[one] |= {other for other, (begun, _) in times.items() if ended < begun}
        return edges

    def _registers(self, number: int, read: Read, pool: str, edges: dict[Node, set[Node]]) -> None:
        """Of all visible writers of a register, the one whose value is shown comes last."""
        writers = defaultdict[int, list[Operation]](list)
        for operation in self.history.operations:
            if self.visible.get((number, operation.number)) and pool in operation.parts:
                for key in operation.parts[pool].registers:
                    writers[key].append(operation)
        for key, visible in writers.items():
            shown = read.pools[pool].registers.get(key, [])
            last = [one for one in visible if one.parts[pool].registers[key] in shown]
            if not last:
                numbers = [one.number for one in visible]
                raise Violation(
                    f"{read.reader} sees {shown} in key {key} of {pool}, which operations {numbers} wrote"
                )
            for one in visible:
                if one is not last[0]:
                    edges["op", one.number, ""].add(("op", last[0].number, ""))
                    self.overwritten += 1


def _check_visible(read: Read, operation: Operation, *, shown: bool) -> None:
    number = operation.number
    if shown and operation.refused:
        raise Violation(f"{read.reader} sees operation {number}, which was refused: {operation.refused}")
    if shown and read.ended < operation.begun:
        raise Violation(f"{read.reader} sees operation {number} before it began")
    if not shown and not read.is_past and min(operation.acknowledged, default=NEVER) < read.begun:
        raise Violation(f"{read.reader} does not see operation {number}, which was acknowledged before")


def _check_answers(operation: Operation) -> None:
    if operation.acknowledged and operation.refused:
        raise Violation(f"operation {operation.number} was acknowledged, and refused: {operation.refused}")


def _check_tokens(history: History, landed: set[int]) -> None:
    """Transactions with one token know of one another if they have a pool in common."""
    used: dict[tuple[str, str], int] = {}
    for operation in history.operations:
        if not operation.token or operation.number not in landed:
            continue
        for pool in operation.pools():
            other = used.setdefault((operation.token, pool), operation.number)
            if other != operation.number:
                raise Violation(
                    f"operations {other} and {operation.number} have the token {operation.token!r}, "
                    f"and both are in {pool}"
                )


def _cycle(edges: dict[Node, set[Node]]) -> list[Node]:
    """One of them, [] if there is none."""
    done: set[Node] = set()
    for start in sorted(edges):
        path: list[Node] = []
        stack = [(start, iter(sorted(edges[start])))] if start not in done else []
        path += [start] if stack else []
        while stack:
            node, others = stack[-1]
            for other in others:
                if other in path:
                    return [*path[path.index(other) :], other]
                if other not in done:
                    path.append(other)
                    stack.append((other, iter(sorted(edges.get(other, ())))))
                    break
            else:
                done.add(node)
                stack.pop()
                path.pop()
    return []


def _named(node: Node) -> str:
    what, number, pool = node
    return f"operation {number}" if what == "op" else f"read {number} of {pool}"
