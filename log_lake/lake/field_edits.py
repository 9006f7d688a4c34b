"""Renames, drops and adds fields of a pool, and lists them.  Called by `Pool`.

An edit is one small transaction of the whole pool, which belongs to no branch; nothing is rewritten.  The room
`log_lake.fields` has its theory, and `lake_core.history.renaming` decides how an edit fits the newest state.
"""

from __future__ import annotations

from dataclasses import dataclass

from lake_core import naming
from lake_core.catalog.pools import Catalog
from lake_core.errors import InvalidInput
from lake_core.phrases import listed
from lake_core.records import AddField, RenameField
from lake_core.schemas.hidden import DELETED
from lake_core.values.types import declared_field, show_type
from log_lake.fields.named import naming_queries, naming_settings
from log_lake.lake.journaled import Journaled
from log_lake.lake.view import View
from log_lake.settings import Settings
from log_lake.settings.settings import TYPE_PREFIX, check_pool
from log_lake.texts.is_text import require_text


@dataclass(frozen=True)
class FieldResult:
    """An edit of a field: its version and transaction, the field's old name, and its new one; None: dropped.  An
    added field has its new name as the old one."""

    version: int
    transaction_id: str
    field: str
    new: str | None


@dataclass(frozen=True)
class PoolField:
    """A field as readers see it: its name, its type, and the name under which objects store it."""

    field: str
    type: str
    stored: str


def fields_of(view: View) -> list[PoolField]:
    """Returns the fields of a view in the order in which the branch got them, without `_deleted` of upsert
    pools."""
    hidden = DELETED if view.rule.kind == "upsert" else None
    return [
        PoolField(one.name, show_type(one), view.names.stored_name(one.name))
        for one in view.schema
        if one.name != hidden
    ]


def edit(pool: Journaled, view: View, name: str, new: str | None) -> FieldResult:
    """Renames a field, or drops it (`new` is None), and returns the result.

    Raises NotFound (no such field), InvalidInput (a setting names the field, or the name is taken),
    OutcomeUnknown, Unavailable.
    """
    require_text(name, "field", example="'user'")
    if new is not None:
        require_text(new, "new name", example="'account'")
    if name == new:
        raise InvalidInput(f"field {name!r} has this name already; use another one")
    _check_pool(pool, view, name)
    message = f"rename field {name} to {new}" if new is not None else f"drop field {name}"
    done = pool.commit_actions((RenameField(name, new),), on=view.version, message=message)
    return FieldResult(done.version, done.transaction_id, name, new)


def add(pool: Journaled, view: View, name: str, type_name: str) -> FieldResult:
    """Adds a field of this type, which is null in all records until a load brings it, and returns the result.

    Raises InvalidInput (an unknown type, a name that is taken, or that something names), OutcomeUnknown,
    Unavailable.
    """
    require_text(name, "field", example="'user'")
    require_text(type_name, "type", example="'bigint'")
    declared_field(name, kind := type_name.strip().lower())  # refuses a type that no field can have
    _check_pool(pool, view, name, is_new=True)
    message = f"add field {name} {kind}"
    done = pool.commit_actions((AddField(name, kind),), on=view.version, message=message)
    return FieldResult(done.version, done.transaction_id, name, name)


def _check_pool(pool: Journaled, view: View, name: str, *, is_new: bool = False) -> None:
    """Raises InvalidInput if the names of the pool's fields cannot change, or if something names this field."""
    if pool.sub_pool:
        raise InvalidInput(f"the sub-pool {pool.sub_pool} has the fields of its pool: name the pool itself")
    if "." in name and name not in view.schema.names and name.partition(".")[0] in view.schema.names:
        raise InvalidInput(f"field {name!r} lies inside of a record: only whole fields are edited")
    pools = Catalog(pool.context, check=check_pool).load().state.pools
    config = pools.get(pool.config.id, pool.config)
    settings = Settings(config.settings)
    if settings["derive.from"] and settings["derive.query"]:
        raise InvalidInput(
            f"pool {config.name!r} is derived: its fields are those of its query; derive it anew with other names"
        )
    if settings["format"] != naming.PARQUET:
        raise InvalidInput(
            f"pool {config.name!r}: its records keep names of fields in themselves (format=zng or zst), so its "
            "fields are not edited; copy the records into a pool with format=parquet"
        )
    if named := [
        one for one in naming_settings(config, name) if not (one.startswith(TYPE_PREFIX) and is_new)
    ]:
        sets = " ".join(f"{one}=" for one in named)
        raise InvalidInput(
            f"field {name!r}: {listed(named)} {'names' if len(named) == 1 else 'name'} it; end that first (lake "
            f"set {config.name} {sets}), then set it with the new name"
        )
    if derived := naming_queries(pools.values(), config.id, name):
        raise InvalidInput(
            f"field {name!r}: the query of the derived pool {listed(derived)} may name it; change or drop that "
            "pool first"
        )
