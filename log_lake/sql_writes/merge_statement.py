"""What a MERGE says, as a value: its pool, its source, its condition and its clauses.  Pure.

Called by `statement`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlglot import TokenType, exp

from lake_core.errors import InvalidInput
from log_lake.sql_writes.text import (
    ChangeTarget,
    StatementText,
    assigned,
    check_columns,
    check_of_record,
    refuse_others,
    target_of,
)
from log_lake.system_tables.answers import quoted


class MergeWhen(Enum):
    """Which records a clause is for: pairs of a pool's record and a source's record that match, records of the
    source without a match, or records of the pool without a match."""

    MATCHED = "WHEN MATCHED"
    NOT_MATCHED = "WHEN NOT MATCHED"
    NOT_BY_SOURCE = "WHEN NOT MATCHED BY SOURCE"


@dataclass(frozen=True)
class SetFields:
    """The action of a clause `UPDATE SET field = expression, ...`; None for `SET *`: each field of the source, by
    its name."""

    sets: tuple[tuple[str, str], ...] | None


@dataclass(frozen=True)
class DeleteRecord:
    """The action of a clause `DELETE`."""


@dataclass(frozen=True)
class LeaveRecord:
    """The action of a clause `DO NOTHING`: no later clause applies to the record."""


@dataclass(frozen=True)
class InsertRecord:
    """The action of a clause `INSERT (field, ...) VALUES (expression, ...)`; None for `INSERT *`: the fields of
    the source."""

    values: tuple[tuple[str, str], ...] | None


MergeAction = SetFields | DeleteRecord | LeaveRecord | InsertRecord


@dataclass(frozen=True)
class MergeClause:
    """One WHEN clause of a MERGE.  The first clause whose `condition` a record fulfils applies to it; "" is always
    fulfilled."""

    when: MergeWhen
    condition: str
    action: MergeAction


@dataclass(frozen=True)
class MergeStatement:
    """`MERGE INTO target AS name USING source AS source_name ON condition WHEN ...`.

    `source` is what follows FROM in a query of it.  `equal`: pairs of a field of the pool and one of the source
    that the condition compares by `=`, each needed.  `fields`: all names of fields in the condition and in those of
    WHEN, in lower case.
    """

    target: ChangeTarget
    name: str
    source: str
    source_name: str
    on: str
    clauses: tuple[MergeClause, ...]
    equal: tuple[tuple[str, str], ...]
    fields: frozenset[str]

    @property
    def needs_every_record(self) -> bool:
        """Whether also records of the pool that no record of the source matches may change."""
        return any(one.when is MergeWhen.NOT_BY_SOURCE for one in self.clauses)


def merge_of(tree: exp.Merge, text: StatementText) -> MergeStatement:
    """Returns the MERGE that a parsed statement describes.  Raises InvalidInput, which names the clause."""
    refuse_others(tree, {"this", "using", "on", "using_cond", "whens"})
    check_columns(tree.args["using"], "MERGE")
    target = target_of(tree.this, may_be_named=True)
    head, *whens = text.after(TokenType.USING).split(TokenType.WHEN)
    source, using = head.cut(TokenType.USING) if tree.args.get("using_cond") else head.cut(TokenType.ON)
    from_ = tree.args["using"]
    if not from_.alias_or_name or from_.args.get("joins") or using is None:
        raise InvalidInput("MERGE: write USING (SELECT ...) AS NAME ON CONDITION, or USING POOL ON CONDITION")
    name, source_name = tree.this.alias_or_name, from_.alias_or_name
    if name.lower() == source_name.lower():
        raise InvalidInput(
            f"MERGE: the pool and the source are both called {name!r}; write USING ... AS NAME"
        )
    equal, on = _condition(tree, str(using), name, source_name)
    trees = [*_conditions(tree)]
    for one in trees:
        check_of_record(one, "MERGE: a condition")
        if alone := next((c for c in one.find_all(exp.Column) if _is_row(c, name, source_name)), None):
            raise InvalidInput(
                f"MERGE: {alone.name!r} is a whole record; name its fields: {alone.name}.FIELD"
            )
    clauses = [_clause(one, part) for one, part in zip(tree.args["whens"].expressions, whens, strict=True)]
    parts = (part.name.lower() for one in trees for c in one.find_all(exp.Column) for part in c.parts)
    named = (pool_field.lower() for pool_field, _ in equal)
    return MergeStatement(
        target,
        name,
        str(source),
        source_name,
        on,
        tuple(clauses),
        tuple(equal),
        frozenset([*parts, *named]),
    )


def _condition(tree: exp.Merge, on: str, name: str, source: str) -> tuple[list[tuple[str, str]], str]:
    if using := tree.args.get("using_cond"):
        fields = [one.name for one in using]
        pairs = [f"{quoted(name)}.{quoted(f)} = {quoted(source)}.{quoted(f)}" for f in fields]
        return [(field, field) for field in fields], " AND ".join(pairs)
    return [*_equal(tree.args["on"], name.lower(), source.lower())], on


def _equal(tree: Any, name: str, source: str) -> Iterator[tuple[str, str]]:
    """Yields a field of the pool and a field of the source for each `=` that must hold in every match."""
    for one in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        if not (
            isinstance(one, exp.EQ) and all(isinstance(s, exp.Column) for s in (one.this, one.expression))
        ):
            continue
        by_table = {
            side.table.lower(): side.name for side in (one.this, one.expression) if len(side.parts) == 2
        }
        if by_table.keys() == {name, source}:
            yield by_table[name], by_table[source]


def _conditions(tree: exp.Merge) -> Iterator[Any]:
    if on := tree.args.get("on"):
        yield on
    for when in tree.args["whens"].expressions:
        if condition := when.args.get("condition"):
            yield condition


def _is_row(column: exp.Column, *names: str) -> bool:
    return not column.table and column.name.lower() in [name.lower() for name in names]


def _clause(tree: Any, text: StatementText) -> MergeClause:
    when = MergeWhen.MATCHED
    if not tree.args["matched"]:
        when = MergeWhen.NOT_BY_SOURCE if tree.args.get("source") else MergeWhen.NOT_MATCHED
    head, action = text.cut(TokenType.THEN)
    assert action is not None  # sqlglot has read it
    condition = str(head.after(TokenType.AND)) if tree.args.get("condition") else ""
    return MergeClause(when, condition, _action(tree.args["then"], action, when))


def _action(tree: Any, text: StatementText, when: MergeWhen) -> MergeAction:
    inserts = when is MergeWhen.NOT_MATCHED
    match tree:
        case exp.Update() if not inserts:
            return SetFields(_sets(tree, text, when))
        case exp.Insert() if inserts:
            return InsertRecord(_values(tree, text))
        case exp.Var() if tree.name.upper() == "DO NOTHING":
            return LeaveRecord()
        case exp.Var() if tree.name.upper() == "DELETE" and not inserts:
            return DeleteRecord()
    raise InvalidInput(
        f"MERGE: {when.value} THEN {str(text).partition(' ')[0].upper()} is not done; write "
        + ("INSERT or DO NOTHING" if inserts else "UPDATE SET, DELETE or DO NOTHING")
    )


def _sets(tree: exp.Update, text: StatementText, when: MergeWhen) -> tuple[tuple[str, str], ...] | None:
    refuse_others(tree, {"expressions"})
    sets: Sequence[Any] = tree.expressions
    if not sets:
        raise InvalidInput(
            "MERGE: UPDATE: say which fields: SET FIELD = EXPRESSION, or SET * for those of the source"
        )
    if isinstance(sets[0], exp.Star):
        if when is MergeWhen.NOT_BY_SOURCE:
            raise InvalidInput(
                "MERGE: SET * takes the record of the source, which is missing BY SOURCE; name fields"
            )
        return None
    return assigned(text.after(TokenType.SET), sets, verb="MERGE")


def _values(tree: exp.Insert, text: StatementText) -> tuple[tuple[str, str], ...] | None:
    refuse_others(tree, {"this", "expression"})
    if isinstance(tree.this, exp.Star):
        return None
    fields, values = tree.this, tree.expression
    if not (isinstance(fields, exp.Tuple) and isinstance(values, exp.Tuple)):
        raise InvalidInput(
            "MERGE: INSERT: a pool's fields have no order: name them, INSERT (a, b) VALUES (...), or write INSERT "
            "* for those of the source"
        )
    names = [one.name for one in fields.expressions]
    for one in values.expressions:
        check_of_record(one, "MERGE: INSERT")
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"MERGE: INSERT: field {doubled[0]!r} is named twice")
    texts = [str(one) for one in text.after(TokenType.VALUES).inside.split(TokenType.COMMA)]
    if len(texts) != len(names):
        raise InvalidInput(f"MERGE: INSERT: {len(names)} fields are named, and there are {len(texts)} values")
    return tuple(zip(names, texts, strict=True))
