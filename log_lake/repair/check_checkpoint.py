"""Checks whether a checkpoint is consistent: its index with its rows, its totals with its references.

Readers rely on three things: the index, to skip row groups; the totals, to count records; and the greatest
object id, to know that the checkpoint lacks an object.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.checkpoints import CheckpointFile
from lake_core.history.checkpoint import BRANCH, BranchRow
from lake_core.history.snapshot.fixed import REFERENCE
from lake_core.history.snapshot.snapshot import Shape
from lake_core.records.decoders import MSGPACK

ShapeTotals = dict[tuple[str, str], tuple[int, int, int]]
"""The numbers of references, records and bytes, by sub-pool and schema."""


def lies_of_checkpoint(file: CheckpointFile) -> Iterator[str]:
    """Yields, in words, each wrong statement of a checkpoint about itself.  Raises CheckpointDamaged,
    CheckpointGone, Unavailable."""
    newest: dict[str, str] = {}
    totals: dict[str, ShapeTotals] = {}
    rows: list[tuple[str, BranchRow]] = []
    parts = dict.fromkeys((g.section, g.branch, g.sub_pool) for g in file.footer.groups)
    for section, branch, sub_pool in parts:
        groups = [
            g for g in file.footer.groups if (g.section, g.branch, g.sub_pool) == (section, branch, sub_pool)
        ]
        before = b""
        tables = file.scan(section, branch=branch, sub_pool=sub_pool)
        for group, table in zip(groups, tables, strict=True):
            keys = table["key"]
            told = (group.first, group.last, group.reach)
            if told != (keys[0].as_py(), keys[-1].as_py(), pc.max(table["high"]).as_py() or b""):
                yield f"the bounds of a row group of the section {section} are others than its footer says"
            if before > keys[0].as_py() or not is_ascending(keys):
                yield f"the rows of the section {section} are out of order"
            before = keys[-1].as_py()
            if section == REFERENCE:
                newest[branch] = max(newest.get(branch, ""), pc.max(table["object"]).as_py())
                add_totals(totals.setdefault(branch, {}), table, sub_pool=sub_pool)
            elif section == BRANCH:
                for name, value in zip(keys.to_pylist(), table["value"].to_pylist(), strict=True):
                    rows.append((name.decode(), MSGPACK.of(BranchRow).decode(value)))
    for name, row in rows:
        if row.newest < newest.get(name, ""):
            yield f"branch {name} has an object newer than the newest that it names: look-ups miss it"
        told_shapes = {(sub_pool, schema): shape for sub_pool, schema, shape in row.shapes}
        if (lie := lying_totals(told_shapes, totals.get(name, {}))) is not None:
            yield f"branch {name}: {lie}"


def is_ascending(keys: pa.ChunkedArray) -> bool:
    """Whether each key is at or above the previous one."""
    whole = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    return bool(pc.all(pc.less_equal(whole[:-1], whole[1:])).as_py()) if len(whole) > 1 else True


def add_totals(totals: ShapeTotals, table: pa.Table, *, sub_pool: str) -> None:
    """Adds the references in these rows to the totals."""
    grouped = table.group_by("schema").aggregate([("records", "sum"), ("size", "sum"), ("size", "count")])
    columns = (grouped[name].to_pylist() for name in ("schema", "size_count", "records_sum", "size_sum"))
    for schema, references, records, size in zip(*columns, strict=True):
        sums = totals.get((sub_pool, schema), (0, 0, 0))
        totals[sub_pool, schema] = (sums[0] + references, sums[1] + records, sums[2] + size)


def lying_totals(told: dict[tuple[str, str], Shape], counted: ShapeTotals) -> str | None:
    """Returns in words how stored and counted totals differ; None if they are equal."""
    for place in sorted(told.keys() | counted.keys()):
        shape = told.get(place) or Shape(0)
        true_sums = counted.get(place, (0, 0, 0))
        if (shape.references, shape.records, shape.size) != true_sums:
            return (
                f"its totals say {shape.references:,} references, {shape.records:,} records and {shape.size:,} "
                f"bytes of schema {place[1]}; there are {true_sums[0]:,}, {true_sums[1]:,} and {true_sums[2]:,}"
            )
    return None
