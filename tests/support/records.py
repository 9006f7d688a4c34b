"""Makes small records with plausible values, for tests that need only one or two of their fields."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lake_core.history import Draft
from lake_core.ids import IdSource
from lake_core.keys.encoding import encode_value
from lake_core.records import Action, AddObject, Entry, SetSchema, Transaction
from lake_core.schemas.schema import schema_id
from log_lake.objects.metadata import Origin

SCHEMA = pa.schema([("k", pa.int64())])
SCHEMA_ID = schema_id(SCHEMA)
KNOWN = SetSchema(SCHEMA_ID, SCHEMA.serialize().to_pybytes())
"""The action that announces the schema of the objects that `add` makes."""

ORIGIN = Origin("lake", "pool", "transaction", "writer")


def an_id(n: int) -> str:
    """Makes an id in which its number can be seen."""
    return f"{n:027d}"


def fixed_ids(second: float = 1_700_000_000.0) -> IdSource:
    """Returns a source of ids, all of one second, that count up."""
    counter = iter(range(1, 1 << 30))
    return IdSource(clock=lambda: second, entropy=lambda size: next(counter).to_bytes(size, "big"))


def add(n: int, low: int = 0, high: int = 10, **fields: Any) -> AddObject:
    """Makes an object with keys from `low` to before `high`."""
    given: dict[str, Any] = {"records": 1, "size": 100, "schema": SCHEMA_ID} | fields
    return AddObject(object=an_id(n), low=encode_value(low), high=encode_value(high), **given)


def transaction(*actions: Action, **fields: Any) -> Transaction:
    """Makes a transaction on main. It is the first one unless `parent` says otherwise."""
    given: dict[str, Any] = {
        "id": an_id(900),
        "branch": "main",
        "parent": 0,
        "read_version": 0,
        "time": 1,
        "author": "test",
    }
    return Transaction(actions=actions, **(given | fields))


def entry(*transactions: Transaction, n: int = 900) -> Entry:
    return Entry(an_id(n), transactions)


def draft(n: int, *actions: Action, **fields: Any) -> Draft:
    """Makes a draft, which is to be committed under the id of number `n`; its objects have the schema of
    `add`."""
    given: dict[str, Any] = {
        "branch": "main",
        "read_version": 0,
        "author": "test",
        "schemas": (SCHEMA,),
    } | fields
    return Draft(id=an_id(n), actions=actions, **given)
