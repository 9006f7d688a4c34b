"""Checks whether records can have the fields that a pool names: those of its key and of its aggregates.

Without this check a user could create a pool whose key no record can have, and every load into it would be
refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey


def check_fields(key: PoolKey, aggregates: Iterable[str]) -> None:
    """Raises InvalidInput for a name that no field of a record can have."""
    from lake_core.schemas.hidden import check_names  # both load Arrow, which `lake --help` does not need
    from lake_core.schemas.limits import name_fault

    names = [*key.names, *aggregates]
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(f"field {name!r} is not UTF-8; write it in UTF-8") from error
        if fault := name_fault(name):
            raise InvalidInput(fault)
    check_names(names)
