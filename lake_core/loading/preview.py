"""What a load would do, without doing it: `lake load --dry-run`.

The files are read as a load reads them, to their end, in bounded memory; only counts, the united schema, the first
records and the first bad records are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from lake_core.combine.hidden import check_names
from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.keys.encoding import key_class
from lake_core.loading.block import Block, Rejected
from lake_core.loading.builder import by_key
from lake_core.objects.normalize import normalized
from lake_core.objects.schema import cast_table, unite_schemas

SHOWN = 5
"""Records that are shown."""

SHOWN_REJECTED = 20
"""Bad records that are shown."""


@dataclass(frozen=True)
class Preview:
    """`schema` and `sample` are of records with the key; `rejected` are the first of `bad` records.

    `fails`: a load would fail, because of the bad records and the policy for them.
    """

    schema: pa.Schema
    sample: pa.Table
    records: int
    nokey: int
    bad: int
    rejected: tuple[Rejected, ...]
    fails: bool = False
    notes: tuple[str, ...] = field(default=())


def preview(blocks: Iterable[Block], *, key: PoolKey, known: str | None) -> Preview:
    """What a load of the blocks would bring to a pool of the key, whose leading field has a `known` class or none.

    Raises InvalidInput if the load as a whole would fail.
    """
    schema = pa.schema([])
    shown: list[pa.Table] = []
    rejected: list[Rejected] = []
    records = nokey = bad = 0
    for block in blocks:
        keyed, keyless = by_key(block.table, key)
        keyed = normalized(keyed)
        schema = unite_schemas([schema, keyed.schema])
        if records < SHOWN and keyed.num_rows:
            shown.append(keyed.slice(0, SHOWN - records))
        records, nokey, bad = records + keyed.num_rows, nokey + keyless.num_rows, bad + len(block.rejected)
        rejected += block.rejected[: SHOWN_REJECTED - len(rejected)]
    check_names(schema.names)
    for name in key.names if records else ():
        found = key_class(schema.field(name).type)
        if name == key.names[0] and known not in (None, found):
            raise InvalidInput(f"key field {name!r} is a {found} in these files, and a {known} in the pool")
    sample = pa.concat_tables(
        [schema.empty_table(), *(cast_table(t, schema, what="the load") for t in shown)]
    )
    return Preview(schema, sample, records, nokey, bad, tuple(rejected))
