"""Checks that the new records of a replace are in its range and fulfil its condition; otherwise repeating the
replace would double them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import key_class
from lake_core.naming import NOKEY
from lake_core.records import AddObject
from lake_core.records.conditions import Condition
from lake_core.schemas.schema import schema_id
from log_lake.reading.revision import Revision
from log_lake.texts.keytext import key_text
from log_lake.where import holds


def check_fulfils(records: pa.Table, condition: Condition) -> None:
    """Raises InvalidInput if a record does not fulfil the condition of the replace."""
    misses = records.num_rows - pc.sum(holds(condition, records)).as_py()
    if misses:
        raise InvalidInput(
            f"replace: {misses:,} of {records.num_rows:,} new records do not fulfil the condition; nothing was "
            "committed. Leave them out, or change the condition"
        )


def check_inside(objects: Sequence[AddObject], key_range: KeyRange, key: PoolKey) -> None:
    """Raises InvalidInput if an object has records outside of the range of the replace."""
    for added in objects:
        if added.sub_pool == NOKEY:
            raise InvalidInput(
                f"replace: {added.records:,} new records without the key lie in no range; nothing was committed. "
                "Give them a key, or leave them out"
            )
        if not added.sub_pool and (
            added.low < key_range.low or (key_range.high is not None and added.high > key_range.high)
        ):
            raise InvalidInput(
                f"replace: of the new records from key {key_text(added.low, key)} to {key_text(added.high, key)} "
                "(both inclusive) some lie outside the range; nothing was committed. Leave them out, or replace a "
                "wider range"
            )


def key_classes_with(
    revision: Revision, objects: Sequence[AddObject], schemas: Sequence[pa.Schema]
) -> dict[str, str]:
    """Returns the class of each key field: from the pool's records, or if there are none from the new objects and
    their schemas."""
    keyed = {added.schema for added in objects if not added.sub_pool}
    fields = [
        schema.field(name)
        for schema in schemas
        if schema_id(schema) in keyed
        for name in revision.key.names
        if name in schema.names
    ]
    brought = {field.name: key_class(field.type) for field in fields if not pa.types.is_null(field.type)}
    return brought | revision.key_classes
