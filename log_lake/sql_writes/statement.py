"""What a writing statement of SQL says, as a value: its pool, its clauses.  Pure.

sqlglot parses the statement, so that a clause which cannot be done is refused by its name.  The clauses themselves
stay the text that the user wrote: DuckDB and the lake's own conditions read them again.  Called by `run`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from lake_core.errors import InvalidInput
from log_lake.sql_writes.create_statement import Create, create_of
from log_lake.sql_writes.merge_statement import MergeStatement, merge_of
from log_lake.sql_writes.text import (
    ChangeTarget,
    StatementText,
    assigned,
    check_columns,
    first_line,
    refuse_others,
    target_of,
)

_WRITES = ("insert", "update", "delete", "truncate", "merge", "create", "drop", "alter", "replace", "upsert")

_FIRST = re.compile(r"(?>\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*([a-z]+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Insert:
    """`INSERT INTO target (fields) query`; `fields` is None for BY NAME: the query names them."""

    target: ChangeTarget
    query: str
    fields: tuple[str, ...] | None


@dataclass(frozen=True)
class Delete:
    """`DELETE FROM target WHERE condition`; None: all records, as TRUNCATE says."""

    target: ChangeTarget
    where: str | None


@dataclass(frozen=True)
class Update:
    """`UPDATE target SET field = expression, ... WHERE condition`; None: all records."""

    target: ChangeTarget
    sets: tuple[tuple[str, str], ...]
    where: str | None


ChangeStatement = Insert | Delete | Update | MergeStatement | Create


def is_write(sql: str) -> bool:
    """Whether a statement changes something, by its first word."""
    first = _FIRST.match(sql)
    return first is not None and first[1].lower() in _WRITES


def creates(sql: str) -> bool:
    """Whether the first word of a statement is CREATE."""
    first = _FIRST.match(sql)
    return first is not None and first[1].lower() == "create"


def parsed(sql: str) -> ChangeStatement:
    """Reads a statement.  Raises InvalidInput for one that is wrong, or that the lake does not support; the error
    names the clause."""
    if "{#" in sql:  # a comment to sqlglot alone
        raise InvalidInput("SQL: `{#` begins no comment of SQL; write -- or /* */")
    try:
        trees = [tree for tree in sqlglot.parse(sql, read="duckdb") if _says_something(tree)]
        tokens = sqlglot.tokenize(sql, read="duckdb")
    except (SqlglotError, RecursionError) as error:
        raise InvalidInput(f"SQL: {first_line(error)}") from error
    if len(trees) != 1:
        raise InvalidInput(f"SQL: {len(trees)} statements; write one, which is one transaction")
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    (tree,) = trees
    text = StatementText(sql, tokens)
    match tree:
        case exp.Insert():
            return _insert(tree, text)
        case exp.Delete():
            if tree.args.get("tables"):  # of `DELETE t WHERE ...`
                raise InvalidInput("DELETE: the word FROM is missing: write DELETE FROM POOL WHERE ...")
            refuse_others(tree, {"this", "where"})
            return Delete(target_of(tree.this), _where(text))
        case exp.TruncateTable():
            refuse_others(tree, {"expressions"})
            (table,) = _one(tree.expressions, what="TRUNCATE")
            return Delete(target_of(table), None)
        case exp.Update():
            return _update(tree, text)
        case exp.Merge():
            return merge_of(tree, text)
        case exp.Create():
            return create_of(tree, text)
        case exp.Drop():
            raise InvalidInput("SQL: DROP is not done: lake drop NAME")
    raise InvalidInput(
        "SQL: write SELECT, INSERT, UPDATE, DELETE, TRUNCATE, MERGE or CREATE TABLE ... AS; other changes are "
        "commands (lake --help)"
    )


def _insert(tree: exp.Insert, text: StatementText) -> Insert:
    refuse_others(tree, {"this", "expression", "by_name"})
    table, fields = tree.this, None
    if isinstance(table, exp.Schema):
        if wrong := [one for one in table.expressions if not isinstance(one, exp.Identifier)]:
            raise InvalidInput(f"INSERT: {wrong[0].sql('duckdb')!r} is no name of a field")
        if tree.args.get("by_name"):
            raise InvalidInput("INSERT: BY NAME takes the names of the query; leave out the list of fields")
        fields = tuple(column.name for column in table.expressions)
        table = table.this
        if doubled := sorted({name for name in fields if fields.count(name) > 1}):
            raise InvalidInput(f"INSERT: field {doubled[0]!r} is named twice")
    elif not tree.args.get("by_name"):
        raise InvalidInput(
            "INSERT: a pool's fields have no order: name them, INSERT INTO POOL (a, b) SELECT ..., or take the "
            "names of the query, INSERT INTO POOL BY NAME SELECT ..."
        )
    if tree.expression is None:
        raise InvalidInput("INSERT: give VALUES or a SELECT")
    check_columns(tree.expression, "INSERT")
    query = _query(text, named=fields is not None)
    if isinstance(tree.expression, exp.Values):
        query = f"SELECT * FROM ({query})"
    elif not isinstance(tree.expression, exp.Query):
        raise InvalidInput("INSERT: give VALUES or a SELECT")
    return Insert(target_of(table), query, fields)


def _update(tree: exp.Update, text: StatementText) -> Update:
    refuse_others(tree, {"this", "expressions", "where"})
    set_, _ = text.after(TokenType.SET).cut(TokenType.WHERE)
    return Update(target_of(tree.this), assigned(set_, tree.expressions, verb="UPDATE"), _where(text))


def _where(text: StatementText) -> str | None:
    _, where = text.cut(TokenType.WHERE)
    return None if where is None else str(where)


def _query(text: StatementText, *, named: bool) -> str:
    """Returns the query of an INSERT: what follows the list of fields if these are `named`, otherwise BY
    NAME."""
    depth = 0
    for at, (before, token) in enumerate(itertools.pairwise(text.tokens), 1):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        words = (before.text.upper(), token.text.upper())
        if not depth and (token.token_type == TokenType.R_PAREN if named else words == ("BY", "NAME")):
            return str(StatementText(text.sql, text.tokens[at + 1 :]))
    raise InvalidInput(
        "INSERT: write INSERT INTO POOL (a, b) SELECT ..., or INSERT INTO POOL BY NAME SELECT ..."
    )


def _says_something(tree: Any) -> bool:
    return tree is not None and not isinstance(tree, exp.Semicolon)


def _one(expressions: Sequence[Any], *, what: str) -> Sequence[Any]:
    if len(expressions) != 1:
        raise InvalidInput(f"{what}: name one pool; a statement is one transaction of one pool")
    return expressions
