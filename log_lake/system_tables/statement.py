"""Finds the tables and columns that a SQL statement names, with DuckDB's parser; runs nothing.

Called by `sql`, and by operators for the links and the lineage of a query.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb
import msgspec

from lake_core.errors import InvalidInput
from log_lake.system_tables.columns import Renamed, folded
from log_lake.system_tables.engine import connected
from log_lake.system_tables.names import is_system_table, pool_and_shape

_SHOW = re.compile(r"\s*show\b", re.IGNORECASE)

_SCHEMAS = ("information_schema", "pg_catalog")
"""The schemas of DuckDB's own tables."""


@dataclass(frozen=True)
class Statement:
    """A parsed SELECT: the tables that it names, and those among them that its WITH clause may define.

    They come from DuckDB's parse tree, because binding a statement needs its tables.
    """

    tree: Any
    tables: frozenset[str]
    defined: frozenset[str]
    explains: bool = False
    """Whether the statement is an EXPLAIN of this SELECT."""

    def check_columns(self, renamed: Renamed) -> None:
        """Raises InvalidInput if a name may mean a column that stands for several fields.

        Each of these fields has another name in its table, so a bare name could mean the column of another
        table, of an outer query, or an alias.
        """
        names = frozenset[str]().union(*renamed.columns.values())
        if not names:
            return
        others = self._other_tables(renamed)
        for node in nodes(self.tree):
            parts = [folded(part) for part in node.get("column_names", ())]
            unclear = names & {folded(name) for name in node.get("using_columns", ())}
            places = (place for place, part in enumerate(parts) if part not in self._aliases)
            column = next(places, len(parts) - 1)
            if parts and parts[column] in names and not (column and parts[column - 1] in others):
                unclear = frozenset({parts[column]})
            if unclear:
                raise InvalidInput(f"query: {renamed.advice(min(unclear))}")
            if node.get("ref_type") == "NATURAL":
                raise InvalidInput(
                    f"query: {renamed.advice(min(names))}; and name the columns of the NATURAL JOIN"
                )

    @cached_property
    def _aliases(self) -> Counter[str]:
        """How often each alias is used for a table of the statement; aliases are in the form in which SQL compares
        names."""
        return Counter(folded(name) for node in nodes(self.tree) for name in _alias(node))

    def _other_tables(self, renamed: Renamed) -> set[str]:
        """Returns the aliases of tables that do not have the renamed column, each as it is written."""
        mine = {
            folded(alias)
            for node in nodes(self.tree)
            for alias in _alias(node)
            if renamed.columns.get(folded(node.get("table_name", "")))
        }
        return {alias for alias, count in self._aliases.items() if count == 1 and alias not in mine}


def _alias(node: dict[str, Any]) -> list[str]:
    """Returns the alias of a node that is a table, as a list; empty for an expression, which has a class."""
    if "class" in node or "alias" not in node:
        return []
    return [name for name in [node["alias"] or node.get("table_name", "")] if name]


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yields every node of a parse tree of DuckDB."""
    left: list[Any] = [tree]
    while left:  # bounded by the tree
        node = left.pop()
        if isinstance(node, dict):
            yield node
        left += node.values() if isinstance(node, dict) else node if isinstance(node, list) else []


def pools_read(sql: str) -> list[tuple[str, str]]:
    """Returns the pools that a statement reads, each with its revision ("" if it names none); empty if the
    statement is wrong."""
    with connected() as connection:
        try:
            statement = parsed(connection, sql)
        except (duckdb.Error, InvalidInput):
            return []
    names = statement.tables - statement.defined
    tables = sorted(pool_and_shape(name)[0] for name in names if not is_system_table(name))
    pools = (name.partition("@") for name in dict.fromkeys(tables))
    return [(pool, revision) for pool, _, revision in pools]


def parsed(connection: duckdb.DuckDBPyConnection, sql: str) -> Statement:
    """Returns the statement.  Raises InvalidInput if it is not exactly one SELECT, and duckdb.Error."""
    tree, explains = _tree(connection, sql)
    names: set[str] = set()
    defined: set[str] = set()
    for node in nodes(tree):
        if node.get("type") == "BASE_TABLE" and not node["schema_name"]:
            names.add(node["table_name"])
        elif node.get("type") == "BASE_TABLE":
            _check_schema(node["schema_name"], node["table_name"])
        defined |= {entry["key"] for entry in node.get("cte_map", {}).get("map", [])}
    _check_distinct(names)
    return Statement(tree, frozenset(names), frozenset(names & defined), explains)


def _tree(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, bool]:
    """Returns DuckDB's parse tree of one SELECT, or of the SELECT of an EXPLAIN; and whether it was an EXPLAIN.

    Raises InvalidInput for any other statement.
    """
    if any("\ud800" <= sign <= "\udfff" for sign in sql):
        raise InvalidInput("query: the SQL is not UTF-8; write it in UTF-8")
    if _SHOW.match(sql):  # DuckDB knows no pool, and would list none
        raise InvalidInput(
            'query: write SELECT name FROM "lake:pools" in place of SHOW TABLES, DESCRIBE in place of SHOW'
        )
    statements = connection.extract_statements(sql)
    kinds = [statement.type for statement in statements]
    texts = [sql] if kinds == [duckdb.StatementType.SELECT] else []
    if kinds == [duckdb.StatementType.EXPLAIN]:
        texts = _explained(sql)
    for text in texts:
        ((answer,),) = connection.execute("SELECT json_serialize_sql(?)", [text]).fetchall()
        try:
            tree = msgspec.json.decode(answer)
        except RecursionError as error:
            raise InvalidInput("query: the SQL is nested too deep; write it with fewer levels") from error
        if not tree["error"]:
            return tree, kinds == [duckdb.StatementType.EXPLAIN]
    raise InvalidInput(
        "query: write one SELECT; a lake is changed by other commands (lake load, lake delete)"
    )


def split(sql: str) -> tuple[list[str], str]:
    """Splits a text into the statements that end with a semicolon, without it, and the text after the last of
    them.

    DuckDB finds the semicolons, so those in quotes and comments end no statement.  Statements and the rest are
    left out if they are blank or only a comment.
    """
    text = sql.encode(errors="surrogatepass")  # the positions are those of bytes
    tokens = duckdb.tokenize(re.sub("[\ud800-\udfff]", "\ufffd", sql))  # as many bytes
    ends = [at for at, kind in tokens if kind == duckdb.token_type.operator and text[at : at + 1] == b";"]
    begins = [0, *(at + 1 for at in ends)]
    words = [at for at, kind in tokens if kind != duckdb.token_type.comment]
    parts = [
        text[begin:end].decode(errors="surrogatepass").strip()
        if any(begin <= word < end for word in words)
        else ""
        for begin, end in zip(begins, [*ends, len(text)], strict=True)
    ]
    last = text[begins[-1] :].decode(errors="surrogatepass").strip()
    is_open = last.startswith("/*") and not last.endswith("*/")  # a comment that goes on in the next line
    return [part for part in parts[:-1] if part], last if is_open else parts[-1]


def _explained(sql: str) -> list[str]:
    """Returns texts that may be the statement of an EXPLAIN: what follows its words, and what follows its
    options."""
    text = sql.encode()  # the positions are those of bytes
    begins = [at for at, kind in duckdb.tokenize(sql) if kind != duckdb.token_type.comment]
    words = [text[begin:end].strip() for begin, end in zip(begins, [*begins[1:], len(text)], strict=True)]
    at = 2 if words[1:2] and words[1].lower().startswith(b"analyze") else 1
    places = [at]
    if words[at:] and words[at].startswith(b"("):
        places += [next_ for next_, word in enumerate(words[at:], at + 1) if word.startswith(b")")][:1]
    return [text[begins[place] :].decode() for place in places if place < len(begins)]


def _check_schema(schema: str, table: str) -> None:
    """Raises InvalidInput for a table in a schema that is not DuckDB's own: no pool is in one."""
    if schema.lower() in _SCHEMAS:
        return
    name = table if schema.lower() == "main" else f"{schema}.{table}"
    raise InvalidInput(
        f'query: {schema}.{table}: no pool is in a schema; write its name in double quotes: "{name}"'
    )


def _check_distinct(names: set[str]) -> None:
    """Raises InvalidInput if two of the tables have the same name in SQL."""
    by_folded: dict[str, str] = {}
    for name in sorted(names):
        if (other := by_folded.setdefault(name.lower(), name)) != name:
            raise InvalidInput(
                f'query: SQL takes "{other}" and "{name}" for one table; ask for one at a time'
            )
