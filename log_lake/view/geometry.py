"""The geometry of a pool: its references over the keys, stacked by age; pure.

Keys have no distance, so the axis is their order: the *rank* of a bound is its number among all bounds of
references and tombstones.  If there are few references, each is drawn as a bar, on top of the older ones that
it overlaps.  If there are many, they are put into bins of equally many ranks.  A bin has the average number of
references over it, by age.  It also has the number of references that begin in it, with their records and
bytes; so sums over the bins are those of the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.history import Reference
from lake_core.history.tombstone import Tombstone
from lake_core.keys import PoolKey
from lake_core.records.transactions import MAX_TRANSACTIONS, version_of
from log_lake.compaction.layout import runs
from log_lake.texts.keytext import show_key
from log_lake.where import show

MAX_BARS = 2_000
"""The most references that are drawn one by one. More bars would be narrower than a pixel, so they are put into
bins."""
BINS = 400
"""The number of bins of the keys: one for every two or three pixels of a usual page."""
AGES = 8
"""The number of classes of age, each with about the same number of references."""
MAX_TOMBSTONES = 500
"""The most tombstones that are drawn, the newest ones."""
MAX_LABEL = 120
"""The most characters of a bound that are shown."""

COLUMNS = ("key", "high", "seq", "records", "size")
"""The columns of references that binning needs (`Snapshot.table`)."""

Ranks = np.ndarray[Any, np.dtype[np.int64]]


class DeleteMark(msgspec.Struct, frozen=True):
    """A tombstone from rank `low` to `high`. It hides records of the versions from `since` to `until`, both
    inclusive.

    It hides nothing in a reference to which it was applied.
    """

    low: float
    high: float
    version: int
    since: int
    until: int
    replaces: bool
    condition: str
    reason: str


class Bar(msgspec.Struct, frozen=True, array_like=True):
    """A reference from rank `low` to `high`, in a layer from 0, the oldest; `first` is its oldest version.

    Tombstones up to the version `applied` hide nothing in it.
    """

    low: int
    high: int
    layer: int
    version: int
    first: int
    records: int
    size: int
    object: str
    applied: int


class Bars(msgspec.Struct, frozen=True, tag="bars", tag_field="kind"):
    """Every reference as a bar; `edges` are the bounds at the ranks."""

    edges: list[str]
    bars: list[Bar]
    layers: int
    tombstones: list[DeleteMark]


class Bins(msgspec.Struct, frozen=True, tag="bins", tag_field="kind"):
    """References in bins; `edges` are the bounds between bins, one more than there are bins.

    `ages` are the versions in each class, first and last, oldest class first.  `cover[class][bin]` is the average
    number of references between two ranks of the bin, `depth[bin]` the greatest of all classes together.  `begins`,
    `records` and `size` count the references that begin in the bin.  Ranks of tombstones are numbers of bins.
    """

    edges: list[str]
    ages: list[tuple[int, int]]
    cover: list[list[float]]
    depth: list[int]
    begins: list[int]
    records: list[int]
    size: list[int]
    tombstones: list[DeleteMark]


def depth_of(table: pa.Table) -> int:
    """Returns the maximum number of references that overlap at a key."""
    if not table.num_rows:
        return 0
    bounds, low, high = _ranks(table, ())
    return int(_coverage(low, high, len(bounds)).max(initial=0))


def bars(references: Sequence[Reference], tombstones: Sequence[Tombstone], key: PoolKey) -> Bars:
    """Returns each reference as a bar, stacked from old to new."""
    table = pa.table(
        {
            "key": pa.array([r.low for r in references], pa.binary()),
            "high": pa.array([r.high for r in references], pa.binary()),
        }
    )
    bounds, low, high = _ranks(table, tombstones)
    rank = {(r.object, r.low): (int(a), int(b)) for r, a, b in zip(references, low, high, strict=True)}
    layers = runs(references)
    drawn = [
        Bar(
            *rank[r.object, r.low],
            layer,
            version_of(r.seq),
            version_of(r.first_seq),
            r.records,
            r.size,
            r.object,
            r.applied,
        )
        for layer, run in enumerate(layers)
        for r in run.references
    ]
    return Bars([_label(b, key) for b in bounds.to_pylist()], drawn, len(layers), _marks(tombstones, bounds))


def bins(table: pa.Table, tombstones: Sequence[Tombstone], key: PoolKey, *, count: int = BINS) -> Bins:
    """Puts references (at least one) into at most `count` bins; the table has `COLUMNS`."""
    bounds, low, high = _ranks(table, tombstones)
    edges = np.unique(np.linspace(0, len(bounds) - 1, min(count, len(bounds) - 1) + 1).astype(np.int64))
    widths = np.diff(edges)
    versions = table["seq"].to_numpy().astype(np.int64) // MAX_TRANSACTIONS
    limits = np.unique(np.quantile(versions, np.arange(1, AGES) / AGES, method="higher"))
    classes = np.searchsorted(limits, versions, side="left")
    cover, ages = [], []
    total = _coverage(low, high, len(bounds))
    for age in range(len(limits) + 1):
        chosen = classes == age
        if not chosen.any():
            continue
        over = np.add.reduceat(_coverage(low[chosen], high[chosen], len(bounds)), edges[:-1])
        cover.append(np.round(over / widths, 3).tolist())
        ages.append((int(versions[chosen].min()), int(versions[chosen].max())))
    bin_of = np.searchsorted(edges, low, side="right") - 1

    def summed(values: Any) -> list[int]:
        sums = np.zeros(len(widths), np.int64)
        np.add.at(sums, bin_of, values)
        return [int(value) for value in sums]

    return Bins(
        edges=[_label(bounds[int(edge)].as_py(), key) for edge in edges],
        ages=ages,
        cover=cover,
        depth=np.maximum.reduceat(total, edges[:-1]).tolist(),
        begins=summed(1),
        records=summed(table["records"].to_numpy()),
        size=summed(table["size"].to_numpy()),
        tombstones=[
            msgspec.structs.replace(
                mark,
                low=round(float(np.interp(mark.low, edges, np.arange(len(edges)))), 3),
                high=round(float(np.interp(mark.high, edges, np.arange(len(edges)))), 3),
            )
            for mark in _marks(tombstones, bounds)
        ],
    )


def newest(tombstones: Sequence[Tombstone]) -> list[Tombstone]:
    """Returns the tombstones to draw, oldest first."""
    return sorted(tombstones, key=lambda t: t.seq)[-MAX_TOMBSTONES:]


def _ranks(table: pa.Table, tombstones: Sequence[Tombstone]) -> tuple[pa.Array, Ranks, Ranks]:
    """Returns all bounds in order, and the ranks of the low and the high bounds of the references."""
    lows = table["key"].combine_chunks().cast(pa.large_binary())
    highs = table["high"].combine_chunks().cast(pa.large_binary())
    of_tombstones = [b for t in newest(tombstones) for b in (t.low, t.high) if b]
    every = pa.concat_arrays([lows, highs, pa.array(of_tombstones, pa.large_binary())]).unique()
    bounds = every.take(pc.sort_indices(every))
    low, high = (pc.index_in(one, bounds).to_numpy(zero_copy_only=False) for one in (lows, highs))
    return bounds, low.astype(np.int64), high.astype(np.int64)


def _coverage(low: Ranks, high: Ranks, ranks: int) -> Ranks:
    """Returns, for each step between two ranks, how many of the ranges cover it."""
    steps = np.zeros(max(ranks, 1), np.int64)
    np.add.at(steps, low, 1)
    np.subtract.at(steps, high, 1)
    return np.cumsum(steps)[:-1]


def _marks(tombstones: Sequence[Tombstone], bounds: pa.Array) -> list[DeleteMark]:
    rank = {bound: i for i, bound in enumerate(bounds.to_pylist())} if tombstones else {}
    return [
        DeleteMark(
            rank[t.low] if t.low else 0,
            rank[t.high] if t.high else max(len(bounds) - 1, 0),
            t.version,
            *_hidden(t),
            t.replaces,
            "" if t.condition is None else show(t.condition)[:MAX_LABEL],
            t.reason[:MAX_LABEL],
        )
        for t in newest(tombstones)
    ]


def _hidden(tombstone: Tombstone) -> tuple[int, int]:
    """Returns the versions whose records it hides, first and last."""
    if tombstone.exactly is None:
        return 0, tombstone.version - 1
    first, last = tombstone.exactly
    return version_of(first), version_of(last)


def _label(bound: bytes, key: PoolKey) -> str:
    """Returns a bound as people read it, cut to `MAX_LABEL` characters."""
    shown = show_key(bound, key)
    text = shown if isinstance(shown, str) else msgspec.json.encode(shown).decode()
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"
