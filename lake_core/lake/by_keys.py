"""Records named by their keys: deleted, or replaced by others.  Called by `Branch`, and by Spark.

In an upsert pool both are loads: a record replaces those of its key by itself, and a delete marker hides them.  So
any number of keys will do.  In append and aggregate pools both are one tombstone whose condition names the keys
(`conditions.of_keys`), which limits their number; new records come in the same transaction, as in every replace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.combine.hidden import DELETED
from lake_core.conditions.of_keys import check_keys, of_keys
from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.keys.ranges import EVERYTHING
from lake_core.lake.deletes import delete
from lake_core.lake.loads import load_blocks
from lake_core.lake.replaces import replace_by_blocks
from lake_core.lake.results import DeleteResult, LoadResult
from lake_core.loading.block import Block

if TYPE_CHECKING:
    from lake_core.lake.branch import Branch


def delete_keys(branch: Branch, keys: pa.Table, *, reason: str, token: str) -> DeleteResult | LoadResult:
    """Delete the records of the keys, as `Branch.delete_keys` says."""
    if branch.rule.kind == "upsert":
        return load_blocks(branch, [Block(as_markers(keys, branch.key))], token=token, message=reason)
    condition = of_keys(keys, branch.key)
    if condition is None:
        return DeleteResult(None)
    return delete(branch, key_range=EVERYTHING, where=condition, reason=reason, token=token)


def as_markers(keys: pa.Table, key: PoolKey) -> pa.Table:
    """A delete marker for each key; raises InvalidInput (`check_keys`)."""
    check_keys(keys, key)
    flags = pa.repeat(pa.scalar(True), keys.num_rows)
    return keys.select(key.names).append_column(DELETED, flags)


def replace_keys(branch: Branch, records: pa.Table, *, deleted: str, token: str, message: str) -> LoadResult:
    """Replace the records of the keys of `records`, as `Branch.replace_keys` says."""
    if deleted and (
        deleted not in records.schema.names or not pa.types.is_boolean(records.schema.field(deleted).type)
    ):
        raise InvalidInput(f"deleted={deleted!r}: the records have no boolean column of that name")
    if branch.rule.kind == "upsert":
        check_keys(records, branch.key)
        if deleted:
            names = [DELETED if name == deleted else name for name in records.schema.names]
            records = records.rename_columns(names)
        return load_blocks(branch, [Block(records)], token=token, message=message)
    condition = of_keys(records, branch.key)
    if condition is None:
        return LoadResult(None)
    if deleted:
        flags = pc.fill_null(records.column(deleted), False)
        records = records.filter(pc.invert(flags)).drop_columns([deleted])
    if not records.num_rows and not branch.revision().references:
        return LoadResult(None)  # nothing to delete, and no record that tells the types of the key
    return replace_by_blocks(
        branch,
        [Block(records)],
        key_range=EVERYTHING,
        where=condition,
        token=token,
        message=message,
        narrow=True,
    )
