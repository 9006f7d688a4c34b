"""The text of a statement, cut at its tokens; and the checks that its clauses share.  Pure.

A clause stays the text that the user wrote, because DuckDB and the lake's own conditions read it again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import Token, TokenType, exp

from lake_core.errors import InvalidInput
from log_lake.system_tables.columns import folded

_OPENS = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
_CLOSES = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END)

_WHOLE: dict[type[Any], str] = {
    exp.Query: "a query",
    exp.Window: "a window function",
    exp.AggFunc: "an aggregate",
    exp.Unnest: "UNNEST",
    exp.Explode: "UNNEST",
    exp.Star: "*",
}
"""Parts of SQL that need more than one record, and so cannot be in an expression that sets a value of one record;
each with its name for errors."""


@dataclass(frozen=True)
class ChangeTarget:
    """The pool that a statement changes, and the branch of it."""

    pool: str
    branch: str


@dataclass(frozen=True)
class StatementText:
    """Some neighbouring tokens of a statement.  It is cut only outside of parentheses and of CASE ... END."""

    sql: str
    tokens: Sequence[Token]

    def __str__(self) -> str:
        """Returns the text as the user wrote it."""
        return self.sql[self.tokens[0].start : self.tokens[-1].end + 1].strip() if self.tokens else ""

    def cut(self, kind: TokenType) -> tuple[StatementText, StatementText | None]:
        """Returns the text before and the text after the first token of a kind; None if there is no such
        token."""
        at = next(self._outer(kind), None)
        if at is None:
            return self, None
        return self._part(0, at), self._part(at + 1, len(self.tokens))

    def split(self, kind: TokenType) -> list[StatementText]:
        """Returns the texts between the tokens of a kind."""
        places = [*self._outer(kind)]
        begins, ends = [0, *(at + 1 for at in places)], [*places, len(self.tokens)]
        return [self._part(begin, end) for begin, end in zip(begins, ends, strict=True)]

    def after(self, kind: TokenType) -> StatementText:
        """Returns the text after the first token of a kind; empty if there is no such token."""
        _, rest = self.cut(kind)
        return rest or self._part(0, 0)

    @property
    def inside(self) -> StatementText:
        """The text between the first token and the last, such as a pair of parentheses."""
        return self._part(1, len(self.tokens) - 1)

    def _part(self, begin: int, end: int) -> StatementText:
        return StatementText(self.sql, self.tokens[begin:end])

    def _outer(self, kind: TokenType) -> Any:
        depth = 0
        for at, token in enumerate(self.tokens):
            depth -= token.token_type in _CLOSES
            if not depth and token.token_type == kind:
                yield at
            depth += token.token_type in _OPENS


def assigned(text: StatementText, sets: Sequence[Any], *, verb: str) -> tuple[tuple[str, str], ...]:
    """Returns the fields and expressions of a SET, as text and as sqlglot's trees.  Raises InvalidInput."""
    names = []
    for one in sets:
        if not (isinstance(one, exp.EQ) and isinstance(one.this, exp.Column)):
            raise InvalidInput(f"{verb}: SET {one.sql('duckdb')}: write FIELD = EXPRESSION")
        if len(one.this.parts) > 1:
            raise InvalidInput(
                f"{verb}: SET {one.this.sql('duckdb')}: name a whole field; struct_update(...) changes one inside"
            )
        check_of_record(one.expression, f"{verb}: SET {one.this.name}")
        names.append(one.this.name)
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"{verb}: field {doubled[0]!r} is set twice")
    values = [str(one.after(TokenType.EQ)) for one in text.split(TokenType.COMMA)]
    if len(values) != len(names) or not all(values):
        raise InvalidInput(f"{verb}: write SET FIELD = EXPRESSION, and a comma between two of them")
    return tuple(zip(names, values, strict=True))


def check_of_record(tree: Any, what: str) -> None:
    """Raises InvalidInput if an expression takes more than the fields of its own record."""
    for kind, words in _WHOLE.items():
        if tree.find(kind):
            raise InvalidInput(
                f"{what}: {words} is not done; an expression takes the fields of its own record"
            )


def check_columns(tree: exp.Expression | exp.Query, verb: str) -> None:
    """Raises InvalidInput if a query within the statement has two columns that SQL takes for one.

    DuckDB would call the second one `NAME_1`, and the pool may have a field of that name.
    """
    for one in tree.find_all(exp.Subquery, exp.Values, exp.CTE):
        names = one.alias_column_names or getattr(one.this, "named_selects", [])
        alike: dict[str, str] = {}
        for name in names:
            if name != "*" and alike.setdefault(folded(name), name) is not name:
                columns = f'"{alike[folded(name)]}" and "{name}"'
                raise InvalidInput(
                    f"{verb}: a query inside has the columns {columns}, which SQL takes for one; rename one (AS)"
                )


def refuse_others(tree: exp.Expression, done: set[str]) -> None:
    """Raises InvalidInput if the statement has a clause that is not among `done`, the clauses that the lake
    supports here."""
    for name, value in tree.args.items():
        if value and name not in done:
            kind = type(tree).__name__.removesuffix("Table").upper()
            raise InvalidInput(
                f"{kind}: the clause {name.replace('_', ' ').strip().upper()} is not done; leave it out"
            )


def target_of(table: Any, *, may_be_named: bool = False) -> ChangeTarget:
    """Returns the pool and branch that a table names; with an alias only if it `may_be_named`.  Raises
    InvalidInput."""
    if not isinstance(table, exp.Table) or table.args.get("db") or table.args.get("joins"):
        raise InvalidInput('SQL: change one pool, by its name: "NAME" or "NAME@BRANCH"')
    if table.args.get("alias") and not may_be_named:
        raise InvalidInput(f"SQL: leave out the alias {table.alias!r} of the pool")
    for clause, value in table.args.items():  # without a sample or a version all records would be changed
        if value and clause not in ("this", "alias"):
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


def first_line(error: Exception) -> str:
    """Returns sqlglot's message about a statement that it cannot read, as one line."""
    if unclosed := re.match("Missing (['\"]) from ", str(error.__cause__)):
        return f"a {unclosed[1]} is not closed; add another one where the text or name ends"
    text = re.sub("\x1b\\[[0-9;]*m", "", str(error)).partition("\n")[0].strip()
    return text or type(error).__name__
