"""The actions that give a field of a pool another name, hide it, or add one (format version 3).

A field has a *stored name*, which objects, tombstones and statistics have, and a name, which readers see.  The
action changes which name a stored name has, for the whole pool: no branch is rewritten, and none conflicts.
`history.renaming` folds it.
"""

from __future__ import annotations

import msgspec

from lake_core.errors import Corrupt

MAX_RENAMED = 10_000
"""The most names of a pool that differ from their stored names.  Every state and checkpoint holds them all."""


class RenameField(msgspec.Struct, frozen=True, tag="rename_field", omit_defaults=True):
    """Gives the field that is called `name` the name `new`; None: the field is dropped, and no reader sees it.
    Guarantees: the two names differ."""

    name: str
    new: str | None = None

    def __post_init__(self) -> None:
        if self.name == self.new:
            raise Corrupt(f"rename_field {self.name[:80]!r}: the new name is the old one")


class AddField(msgspec.Struct, frozen=True, tag="add_field"):
    """Gives the pool the field `name`, before a record has it; `type_name` is as in a setting `type.FIELD`."""

    name: str
    type_name: str
