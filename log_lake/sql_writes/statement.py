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
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from lake_core.errors import InvalidInput

_WRITES = ("insert", "update", "delete", "truncate", "merge", "create", "drop", "alter", "replace", "upsert")

_FIRST = re.compile(r"(?>\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*([a-z]+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class ChangeTarget:
    """The pool that a statement changes, and the branch of it."""

    pool: str
    branch: str


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


ChangeStatement = Insert | Delete | Update


def is_write(sql: str) -> bool:
    """Whether the first word of a statement is that of one which changes something."""
    first = _FIRST.match(sql)
    return first is not None and first[1].lower() in _WRITES


def parsed(sql: str) -> ChangeStatement:
    """The statement.  Raises InvalidInput for one that is wrong, or that is not done here; it names the clause."""
    if "{#" in sql:  # a comment to sqlglot alone
        raise InvalidInput("SQL: `{#` begins no comment of SQL; write -- or /* */")
    try:
        trees = [tree for tree in sqlglot.parse(sql, read="duckdb") if _says_something(tree)]
        tokens = sqlglot.tokenize(sql, read="duckdb")
    except (SqlglotError, RecursionError) as error:
        raise InvalidInput(f"SQL: {_first_line(error)}") from error
    if len(trees) != 1:
        raise InvalidInput(f"SQL: {len(trees)} statements; write one, which is one transaction")
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    (tree,) = trees
    text = _Text(sql, tokens)
    match tree:
        case exp.Insert():
            return _insert(tree, text)
        case exp.Delete():
            if tree.args.get("tables"):  # of `DELETE t WHERE ...`
                raise InvalidInput("DELETE: the word FROM is missing: write DELETE FROM POOL WHERE ...")
            _refuse_others(tree, {"this", "where"})
            return Delete(_target(tree.this), text.clause(TokenType.WHERE))
        case exp.TruncateTable():
            _refuse_others(tree, {"expressions"})
            (table,) = _one(tree.expressions, what="TRUNCATE")
            return Delete(_target(table), None)
        case exp.Update():
            return _update(tree, text)
        case exp.Merge():
            raise InvalidInput(
                "SQL: MERGE is not done. An upsert pool does it at each INSERT: readers see the newest record of a "
                "key. In Python, pool.branch().replace_keys(table, deleted=...) does it for any pool"
            )
        case exp.Create():
            raise InvalidInput(
                "SQL: CREATE is not done, because a pool needs a key: lake create NAME --key FIELD, then "
                "INSERT INTO NAME BY NAME SELECT ..."
            )
        case exp.Drop():
            raise InvalidInput("SQL: DROP is not done: lake drop NAME")
    raise InvalidInput(
        "SQL: write SELECT, INSERT, UPDATE, DELETE or TRUNCATE; other changes are commands (lake --help)"
    )


def _insert(tree: exp.Insert, text: _Text) -> Insert:
    _refuse_others(tree, {"this", "expression", "by_name"})
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
    query = text.query(named=fields is not None)
    if isinstance(tree.expression, exp.Values):
        query = f"SELECT * FROM ({query})"
    elif not isinstance(tree.expression, exp.Query):
        raise InvalidInput("INSERT: give VALUES or a SELECT")
    return Insert(_target(table), query, fields)


def _update(tree: exp.Update, text: _Text) -> Update:
    _refuse_others(tree, {"this", "expressions", "where"})
    sets = []
    for one in tree.expressions:
        if not (isinstance(one, exp.EQ) and isinstance(one.this, exp.Column)):
            raise InvalidInput(f"UPDATE: SET {one.sql('duckdb')}: write FIELD = EXPRESSION")
        if len(one.this.parts) > 1:
            raise InvalidInput(
                f"UPDATE: SET {one.this.sql('duckdb')}: name a whole field; struct_update(...) changes one inside"
            )
        for kind, words in _WHOLE.items():
            if one.expression.find(kind):
                raise InvalidInput(
                    f"UPDATE: SET {one.this.name}: {words} is not done; an expression takes the fields of its own "
                    "record"
                )
        sets.append(one.this.name)
    if doubled := sorted({name for name in sets if sets.count(name) > 1}):
        raise InvalidInput(f"UPDATE: field {doubled[0]!r} is set twice")
    values = text.assigned()
    if len(values) != len(sets):
        raise InvalidInput("UPDATE: write SET FIELD = EXPRESSION, and a comma between two of them")
    return Update(
        _target(tree.this),
        tuple(zip(sets, values, strict=True)),
        text.clause(TokenType.WHERE),
    )


_WHOLE: dict[type[Any], str] = {
    exp.Query: "a query",
    exp.Window: "a window function",
    exp.AggFunc: "an aggregate",
    exp.Unnest: "UNNEST",
    exp.Explode: "UNNEST",
    exp.Star: "*",
}
"""What a value of one record cannot come from."""


def _refuse_others(tree: exp.Expression, done: set[str]) -> None:
    for name, value in tree.args.items():
        if value and name not in done:
            kind = type(tree).__name__.removesuffix("Table").upper()
            raise InvalidInput(
                f"{kind}: the clause {name.replace('_', ' ').strip().upper()} is not done; leave it out"
            )


def _target(table: Any) -> ChangeTarget:
    if not isinstance(table, exp.Table) or table.args.get("db") or table.args.get("joins"):
        raise InvalidInput('SQL: change one pool, by its name: "NAME" or "NAME@BRANCH"')
    if table.args.get("alias"):
        raise InvalidInput(f"SQL: leave out the alias {table.alias!r} of the pool")
    for clause, value in table.args.items():  # without a sample or a version all records would be changed
        if value and clause != "this":
            word = clause.replace("_", " ").upper()
            raise InvalidInput(
                f"SQL: the clause {word} beside the name of the pool is not done; leave it out"
            )
    if not isinstance(table.this, exp.Identifier):
        raise InvalidInput('SQL: change a pool, by its name: "NAME" or "NAME@BRANCH"')
    name: str = table.name
    pool, _, branch = name.partition("@")
    if ":" in name or pool == "lake":
        raise InvalidInput(f'SQL: "{name}" is a table of the lake, which no statement changes')
    return ChangeTarget(pool, branch or "main")


def _says_something(tree: Any) -> bool:
    return tree is not None and not isinstance(tree, exp.Semicolon)


def _one(expressions: Sequence[Any], *, what: str) -> Sequence[Any]:
    if len(expressions) != 1:
        raise InvalidInput(f"{what}: name one pool; a statement is one transaction of one pool")
    return expressions


def _first_line(error: Exception) -> str:
    if unclosed := re.match("Missing (['\"]) from ", str(error.__cause__)):
        return f"a {unclosed[1]} is not closed; add another one where the text or name ends"
    text = re.sub("\x1b\\[[0-9;]*m", "", str(error)).partition("\n")[0].strip()
    return text or type(error).__name__


@dataclass(frozen=True)
class _Text:
    """The text of a statement, cut at tokens that stand in no parentheses."""

    sql: str
    tokens: Sequence[Token]

    def _outer(self) -> list[Token]:
        depth, outer = 0, []
        for token in self.tokens:
            closes = token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
            depth -= closes
            if not depth and not closes:
                outer.append(token)
            depth += token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
        return outer

    def _between(self, begin: int, end: int) -> str:
        return self.sql[begin:end].strip()

    @property
    def _end(self) -> int:
        return self.tokens[-1].end + 1

    def clause(self, kind: TokenType) -> str | None:
        """The text after the word that begins a clause; None without it."""
        at = next((token for token in self._outer() if token.token_type == kind), None)
        return None if at is None else self._between(at.end + 1, self._end)

    def query(self, *, named: bool) -> str:
        """The query of an INSERT: what follows the list of fields if these are `named`, otherwise BY NAME."""
        depth = 0
        for before, token in itertools.pairwise(self.tokens):
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            words = (before.text.upper(), token.text.upper())
            if not depth and (token.token_type == TokenType.R_PAREN if named else words == ("BY", "NAME")):
                return self._between(token.end + 1, self._end)
        raise InvalidInput(
            "INSERT: write INSERT INTO POOL (a, b) SELECT ..., or INSERT INTO POOL BY NAME SELECT ..."
        )

    def assigned(self) -> list[str]:
        """The expressions of SET."""
        outer = self._outer()
        first = next(at for at, token in enumerate(outer) if token.token_type == TokenType.SET)
        wheres = (token.start for token in outer if token.token_type == TokenType.WHERE)
        end = next(wheres, self._end)
        equals, commas, is_value = [], [], False
        for token in outer[first + 1 :]:
            if token.start >= end:
                break
            if token.token_type == TokenType.EQ and not is_value:
                equals.append(token.end + 1)
                is_value = True
            if token.token_type == TokenType.COMMA:
                commas.append(token.start)
                is_value = False
        ends = [*commas, end]
        if len(equals) != len(ends):
            raise InvalidInput("UPDATE: write SET FIELD = EXPRESSION, and a comma between two of them")
        return [self._between(begin, end) for begin, end in zip(equals, ends, strict=True)]
