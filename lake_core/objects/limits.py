"""Limits on what a record may be, so that every reader of the lake can read what a load accepted.

A load checks them before anything is committed: `check_schema` for names, columns and nesting, which a schema
shows; the readers of files for a single record, so that the message names file and line.  docs/limits.md
lists them for users.  Called by `ingest` and by whatever else brings records in.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from lake_core.errors import InvalidInput

MAX_NESTING = 32
"""Records, lists and maps within one another in one field.  With 35 every reader still works, with 50 none; the
JSON readers of Python and Arrow recurse, and end the process when they recurse too deep (decision 38)."""

MAX_COLUMNS = 10_000
"""Top-level fields of a pool's records in one load."""

MAX_NAME_BYTES = 1_024
"""UTF-8 bytes of one field's name."""

MAX_KEY_BYTES = 32_768
"""Bytes of one text or binary value of a record's key.  The journal and every object's footer hold keys."""

MAX_VALUE_BYTES = 16 << 20
"""Bytes of one text or binary value, or of one value kept as JSON."""


def name_fault(name: str) -> str:
    """What is wrong with a field's name; "" if it may be stored.  JSON allows the empty name, and so do we."""
    if len(name.encode(errors="surrogatepass")) > MAX_NAME_BYTES:
        return f"field {name[:40] + '...'!r}: a name may have at most {MAX_NAME_BYTES:,} bytes"
    if "\0" in name:
        return f"field {name!r}: a name must not contain the character NUL"
    return ""


def names_fault(names: Iterable[str]) -> str:
    """The first fault of the names of one record; "" if they may stand beside one another."""
    seen: set[str] = set()
    for name in names:
        if fault := name_fault(name):
            return fault
        if name in seen:
            return f"field {name!r} is there more than once"
        seen.add(name)
    return ""


def too_deep(name: str) -> str:
    """The message for a field that is nested too deep."""
    return f"field {name!r}: nested deeper than {MAX_NESTING} records and lists within one another"


def schema_fault(schema: pa.Schema) -> str:
    """The first limit that records of the schema exceed; "" if there is none."""
    if len(schema) > MAX_COLUMNS:
        return f"{len(schema):,} fields; a record may have at most {MAX_COLUMNS:,}"
    if fault := names_fault(schema.names):
        return fault
    for field in schema:
        if not pa.types.is_nested(field.type):
            continue
        level, depth = [field.type], 0
        while level:  # bounded by the check
            depth += 1
            if depth > MAX_NESTING:
                return too_deep(field.name)
            for kind in level:
                if pa.types.is_struct(kind) and (fault := names_fault(f.name for f in kind)):
                    return f"in field {field.name!r}: {fault}"
            children = [kind.field(i).type for kind in level for i in range(kind.num_fields)]
            level = [
                kind for kind in children if pa.types.is_nested(kind) and not pa.types.is_dictionary(kind)
            ]
    return ""


def check_schema(schema: pa.Schema) -> None:
    """Raises InvalidInput when records of the schema exceed a limit."""
    if fault := schema_fault(schema):
        raise InvalidInput(fault)
