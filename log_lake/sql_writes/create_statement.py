"""What a CREATE TABLE ... AS says, as a value: the name, the key, the kind and the query.  Pure.

The key is that of PRIMARY KEY, which makes an upsert pool: one record per key.  Or it is that of the query's
ORDER BY, which makes an append pool.  Called by `statement`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import TokenType, exp

from lake_core.errors import InvalidInput
from lake_core.keys import KeyField, PoolKey
from log_lake.sql_writes.text import ChangeTarget, StatementText, check_columns, refuse_others, target_of

_HOW = (
    "CREATE TABLE NAME AS SELECT ... ORDER BY FIELD makes an append pool with that key, CREATE TABLE NAME (PRIMARY "
    "KEY (FIELD)) AS SELECT ... an upsert pool"
)


@dataclass(frozen=True)
class Create:
    """`CREATE TABLE target AS query`; `if_missing`: nothing is done if the pool is there (IF NOT EXISTS)."""

    target: ChangeTarget
    key: PoolKey
    kind: str
    query: str
    if_missing: bool


def create_of(tree: exp.Create, text: StatementText) -> Create:
    """Returns the CREATE that a parsed statement describes.  Raises InvalidInput, which names the clause."""
    if tree.args.get("kind") != "TABLE":
        raise InvalidInput(f"SQL: CREATE {tree.args.get('kind')} is not done; {_HOW}")
    if tree.args.get("replace"):
        raise InvalidInput("CREATE: OR REPLACE is not done: lake drop NAME is a transaction of its own")
    if properties := tree.args.get("properties"):
        raise InvalidInput(
            f"CREATE: the clause {_word(properties)} is not done; leave it "
            "out. lake set gives a pool its settings"
        )
    refuse_others(tree, {"this", "kind", "expression", "exists"})
    query = tree.expression
    if not isinstance(query, exp.Query):
        raise InvalidInput(f"CREATE: a pool has the fields of the records that it gets; {_HOW}")
    check_columns(query, "CREATE")
    table, key, kind = tree.this, _order(query), "append"
    if isinstance(table, exp.Schema):
        table, key, kind = table.this, _primary(table), "upsert"
    target = target_of(table)
    if target.branch != "main" or "." in target.pool:
        raise InvalidInput(f"CREATE: {table.name!r} is no name of a new pool; leave out the branch")
    if key is None:
        raise InvalidInput(f"CREATE: a pool needs a key; {_HOW}")
    body = str(text.after(TokenType.ALIAS))
    return Create(target, key, kind, body, bool(tree.args.get("exists")))


def _word(properties: exp.Properties) -> str:
    """Returns the first property of the statement, such as TEMPORARY or WITH, as an error names it."""
    name = type(properties.expressions[0]).__name__.removesuffix("Property").upper()
    return {"": "WITH", "WITHDATA": "WITH NO DATA"}.get(name, name)


def _primary(table: exp.Schema) -> PoolKey:
    parts = table.expressions
    if len(parts) != 1 or not isinstance(parts[0], exp.PrimaryKey):
        raise InvalidInput(
            "CREATE: beside PRIMARY KEY (FIELD, ...) nothing stands in the parentheses: the query names the "
            "fields, and says their types"
        )
    names = [one.name for one in parts[0].expressions if isinstance(one, exp.Identifier)]
    if len(names) != len(parts[0].expressions):
        raise InvalidInput("CREATE: PRIMARY KEY: name fields")
    return PoolKey(tuple(KeyField(name) for name in names))


def _order(query: Any) -> PoolKey | None:
    """Returns the key of the query's own ORDER BY; None without one."""
    order = query.args.get("order")
    if order is None:
        return None
    fields = []
    for one in order.expressions:
        field = one.this
        if not isinstance(field, exp.Column) or len(field.parts) > 1:
            raise InvalidInput(
                f"CREATE: ORDER BY {field.sql('duckdb')} is the key of the pool: name a field of the query"
            )
        fields.append(KeyField(field.name, descending=bool(one.args.get("desc"))))
    return PoolKey(tuple(fields))
