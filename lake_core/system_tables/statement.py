"""What a statement of SQL names, by DuckDB's parser: nothing is bound, planned or run.

Called by `sql`, and by operators for the links and the lineage of a query.
"""

from __future__ import annotations

from typing import Any

import duckdb
import msgspec

from lake_core.errors import InvalidInput
from lake_core.system_tables.engine import connected
from lake_core.system_tables.names import is_system_table, pool_and_shape


def pools_read(sql: str) -> list[tuple[str, str]]:
    """The pools that a statement reads, each with its revision ("" if none is said); empty if it has a fault."""
    with connected() as connection:
        try:
            names, defined = table_names(connection, sql)
        except (duckdb.Error, InvalidInput):
            return []
    tables = sorted(pool_and_shape(name)[0] for name in names - defined if not is_system_table(name))
    pools = (name.partition("@") for name in dict.fromkeys(tables))
    return [(pool, revision) for pool, _, revision in pools]


def table_names(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[set[str], set[str]]:
    """The tables that a statement names, and those among them that the statement may define itself (WITH).

    They come from the parsed statement, because binding one needs its tables.  Raises InvalidInput.
    """
    names: set[str] = set()
    defined: set[str] = set()
    nodes: list[Any] = [_parsed(connection, sql)]
    while nodes:  # bounded by the tree
        node = nodes.pop()
        if isinstance(node, dict):
            if node.get("type") == "BASE_TABLE" and not node["schema_name"]:
                names.add(node["table_name"])
            defined |= {entry["key"] for entry in node.get("cte_map", {}).get("map", [])}
        nodes += node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    _check_distinct(names)
    return names, names & defined


def _parsed(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    """DuckDB's tree of one SELECT, or of the SELECT of an EXPLAIN; raises InvalidInput for any other statement."""
    if any("\ud800" <= sign <= "\udfff" for sign in sql):
        raise InvalidInput("query: the SQL is not UTF-8; write it in UTF-8")
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
            return tree
    raise InvalidInput("query: write one SELECT; a lake is changed by other commands")


def _explained(sql: str) -> list[str]:
    """Texts that may be the statement of an EXPLAIN: what follows its words, and what follows its options."""
    text = sql.encode()  # the positions are those of bytes
    begins = [at for at, kind in duckdb.tokenize(sql) if kind != duckdb.token_type.comment]
    words = [text[begin:end].strip() for begin, end in zip(begins, [*begins[1:], len(text)], strict=True)]
    at = 2 if words[1:2] and words[1].lower().startswith(b"analyze") else 1
    places = [at]
    if words[at:] and words[at].startswith(b"("):
        places += [next_ for next_, word in enumerate(words[at:], at + 1) if word.startswith(b")")][:1]
    return [text[begins[place] :].decode() for place in places if place < len(begins)]


def _check_distinct(names: set[str]) -> None:
    """Raises InvalidInput if SQL takes two of the tables for one."""
    by_folded: dict[str, str] = {}
    for name in sorted(names):
        if (other := by_folded.setdefault(name.lower(), name)) != name:
            raise InvalidInput(
                f'query: SQL takes "{other}" and "{name}" for one table; ask for one at a time'
            )
