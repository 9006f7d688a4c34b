"""Makes random pools for native reads: of all kinds, with types that unite, deletes, compactions, branches, and
clipped references.

The same seed makes the same pool. The values are those in which engines differ: NaN, -0.0, nulls, the ends of a
type, times before 1970, texts with unusual characters.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
from random import Random
from typing import Any

import msgspec
import pyarrow as pa

from lake_core.errors import InvalidInput, LakeError
from lake_core.history import Reference
from lake_core.history.merge import putting
from lake_core.keys.encoding import encode_key
from lake_core.records import RemoveReference
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact

KEYS = ("k", "k:desc", "k,s", "s:desc", "x", "d", "t", "b,k")
STEPS = (
    *("load", "load", "load", "range", "where", "where"),
    *("compact", "compact", "compact", "branch", "branch", "revert", "revert", "replace"),
)
KINDS = ("append", "append", "upsert", "aggregate")

_EARLY, _LATE = dt.datetime(1582, 10, 10, 1, 2, 3), dt.datetime(2026, 1, 2, 3, 4, 5, 678901)
_INFINITE, _NAN = float("inf"), float("nan")

VALUES: dict[str, list[tuple[pa.DataType, list[Any]]]] = {
    "n": [
        (pa.int8(), [-128, 0, 1, 127]),
        (pa.int64(), [-(2**53), 0, 1, 2**31]),
        (pa.int32(), [0, 1, 2]),
        (pa.float64(), [-1.5, 0.0, -0.0, 1.0, _NAN]),
    ],
    "w": [(pa.int64(), [-(2**63), 0, 2**63 - 1]), (pa.int16(), [0, 7])],
    "u": [(pa.uint8(), [0, 255]), (pa.uint32(), [0, 1, 2**32 - 1]), (pa.uint16(), [65_535])],
    "huge": [(pa.uint64(), [0, 2**64 - 1])],
    "f": [(pa.float32(), [-1.5, -0.0, 0.0, _INFINITE, _NAN]), (pa.float64(), [-1.5, 0.1, _NAN])],
    "dec": [
        (pa.decimal128(10, 2), [decimal.Decimal("-1.25"), decimal.Decimal("0.00")]),
        (pa.decimal128(14, 3), [decimal.Decimal("99.999"), decimal.Decimal("0.000")]),
    ],
    "y": [(pa.binary(), [b"", b"\0", b"\0\xff", b"\xff"])],
    "Q.`q": [(pa.string(), ["", "a'b\\", "é\0", "Z"])],
    "at": [
        (pa.timestamp("ms", "UTC"), [_EARLY.replace(microsecond=0), _LATE.replace(microsecond=0)]),
        (pa.timestamp("us", "UTC"), [_EARLY, _LATE]),
    ],
    "local": [(pa.timestamp("us"), [_EARLY, _LATE])],
    "fine": [(pa.timestamp("ns"), [-1, 0, 10**18 + 123_456_789]), (pa.timestamp("us"), [0, 1])],
    "clock": [(pa.time64("us"), [dt.time(0, 0, 1), dt.time(23, 59)])],
    "mixed": [(pa.int64(), [0, 1]), (pa.string(), ["0", "a"])],
    "empty": [(pa.null(), [])],
    "list": [(pa.list_(pa.int16()), [[], [1, None]]), (pa.list_(pa.float64()), [[0.5, _NAN]])],
    "map": [
        (pa.map_(pa.string(), pa.int8()), [[], [("a", 1)]]),
        (pa.map_(pa.string(), pa.int64()), [[("b", None)]]),
    ],
    "rec": [
        (
            pa.struct([("a", pa.int8()), ("x.y", pa.float64())]),
            [{"a": 1, "x.y": _NAN}, {"a": None, "x.y": 0.0}],
        ),
        (pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 5, "b": "x"}, {"a": None, "b": None}]),
    ],
}
"""For each field, the types that it has in different loads, and its values."""

CONDITIONS = (
    "k < 4",
    "k in (1, 2, 30)",
    "k != 2.5 and s > 'a'",
    "n > 1",
    "not n <= 0.5",
    "n = -0.0 or n is null",
    "n in (0, 1.5, null)",
    "w >= 9223372036854775807",
    "u > 254 and not u = 255",
    "f > 1",
    "f != 0",
    "not f < 100",
    "f in (0, 0.1)",
    "dec > 0.001",
    "dec = 0",
    "s in ('', 'b')",
    "s >= 'é'",
    '"Q.`q" = \'Z\' or "Q.`q" is null',
    "at < timestamp '2000-01-01T00:00:00Z'",
    "local = timestamp '1582-10-10T01:02:03'",
    "d > '1970-01-01'",
    "b = true",
    "rec.a = 5 or rec.a is null",
    'rec."x.y" > 1',
    "rec is null",
    "list is not null",
    "mixed = 1",
    "fine > timestamp '1970-01-01T00:00:00'",
    "empty = 1 or empty is null",
    "huge > 1",
)

RANGES: dict[str, list[Any]] = {
    "k": [0, 2, 3, 5, 8, 2.5],
    "s": ["", "a", "b", "é"],
    "x": [-1.5, 0.0, 2.5, _NAN],
    "d": [dt.date(1970, 1, 1), dt.date(2026, 2, 3)],
    "t": [None],
    "b": [True],
}


def filtered(lake: Lake, pool: Pool, random: Random) -> Pool:
    """Returns the pool with a random filter, or without one if it cannot have the one that was chosen."""
    where = random.choice(["", *CONDITIONS])
    with contextlib.suppress(InvalidInput):  # a field outside of the key of an aggregate pool
        lake.catalog.configure(pool.name, {"keep.where": where})
    return lake.pool(pool.name)


def build(lake: Lake, random: Random, *, name: str = "p", steps: int = 9) -> Pool:
    """Makes a pool of a random kind and key, by so many loads, deletes, compactions and other steps."""
    kind, key = random.choice(KINDS), random.choice(KEYS)
    fields = random.sample(list(VALUES), random.randrange(2, 6))
    aggregates = {}
    if kind == "aggregate":
        aggregates = {"n": random.choice(["sum", "count", "last"]), "w": random.choice(["max", "first"])}
        fields = [field for field in fields if field != "mixed"]
    pool = lake.create_pool(name, key=key, kind=kind, aggregates=aggregates)
    if random.random() < 0.4:
        pool = filtered(lake, pool, random)
    _load(pool, random, fields, branch="main")
    names = ["main"]
    for step in range(steps):
        branch = random.choice(names)
        with contextlib.suppress(InvalidInput):  # what does not fit this pool is no step
            match random.choice(STEPS):
                case "load":
                    _load(pool, random, fields, branch=branch)
                case "range":
                    view = pool.at(branch)
                    pool.branch(branch).delete(key_range=a_range(view, random))
                case "where":
                    pool.branch(branch).delete(where=random.choice(CONDITIONS))
                case "compact":
                    _compact(pool, random, branch=branch)
                case "revert":
                    version = str(random.randrange(1, min(4, pool.at().version + 1)))
                    with contextlib.suppress(
                        LakeError
                    ):  # a version of another branch, or one that others rest on
                        pool.branch(branch).revert(version)
                case "replace":
                    replaced = _records(pool, random, fields)
                    with contextlib.suppress(LakeError):  # records outside of the range
                        pool.branch(branch).replace_with(replaced)
                case "branch" if len(names) == 1:
                    names.append(f"b{step}")
                    pool.create_branch(names[-1])
                case "branch":
                    with contextlib.suppress(LakeError):
                        pool.branch("main").merge(names[1])
    return pool


def a_range(view: Any, random: Random) -> Any:
    """Draws a key range of the view's pool, which may be open."""
    values = RANGES[view.key.names[0]]
    low, high = sorted(
        view.key_range(low=random.choice(values)).low if random.random() < 0.8 else b"" for _ in range(2)
    )
    return type(view.key_range())(low, None if high == low or random.random() < 0.3 else high)


def _load(pool: Pool, random: Random, fields: list[str], *, branch: str) -> None:
    pool.branch(branch).append(_records(pool, random, fields))


def _records(pool: Pool, random: Random, fields: list[str]) -> pa.Table:
    count = random.randrange(1, 12)
    few = random.randrange(2, 9)
    columns: dict[str, pa.Array] = {
        "k": pa.array([random.randrange(few) for _ in range(count)], random.choice([pa.int64(), pa.int8()])),
        "s": _of(random, pa.string(), ["", "a", "b", "é", "a'\\"], count, missing=0.0),
        "x": _of(random, pa.float64(), [-1.5, -0.0, 0.0, 2.5, _INFINITE, _NAN], count, missing=0.0),
        "d": _of(
            random,
            pa.date32(),
            [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2026, 2, 3)],
            count,
            missing=0.0,
        ),
        "t": _of(random, pa.timestamp("us", "UTC"), [_EARLY, _LATE], count, missing=0.0),
        "b": _of(random, pa.bool_(), [False, True], count, missing=0.0),
    }
    wide = pool.config.kind != "aggregate"
    for field in fields:
        if random.random() < 0.75:
            kind, values = random.choice(VALUES[field]) if wide else VALUES[field][0]
            columns[field] = _of(random, kind, values, count)
    if pool.config.kind == "upsert" and random.random() < 0.4:
        columns["_deleted"] = _of(random, pa.bool_(), [False, True], count)
    return pa.table(columns)


def _of(
    random: Random, kind: pa.DataType, values: list[Any], count: int, *, missing: float = 0.2
) -> pa.Array:
    chosen = [
        None if not values or random.random() < missing else random.choice(values) for _ in range(count)
    ]
    if pa.types.is_timestamp(kind) and kind.tz:
        chosen = [None if v is None else v.replace(tzinfo=dt.UTC) for v in chosen]
    return pa.array(chosen, kind)


def _compact(pool: Pool, random: Random, *, branch: str) -> None:
    references = pool.at(branch).references
    some = random.sample(references, random.randrange(1, len(references) + 1)) if references else []
    if some:
        with contextlib.suppress(LakeError):  # an aggregate pool takes whole neighbours only
            compact(pool.branch(branch), some, outputs=random.randrange(1, 3))


def clip(pool: Pool, random: Random, *, branch: str = "main") -> None:
    """Commits a clip of one reference, as the format allows: the same object with fewer of its keys."""
    view = pool.at(branch)
    if view.references:
        reference = random.choice(view.references)
        without = (RemoveReference(reference.object, reference.low),)
        pool.commit_actions(without, branch=branch, message="clip")
        pool.commit_actions((putting(clipped(reference, view, random)),), branch=branch, message="clip")


def clipped(reference: Reference, view: Any, random: Random) -> Reference:
    """Returns the reference with fewer keys, if one of its keys can be a bound."""
    inside = [b for b in _bounds(view, random) if reference.low < b < reference.high]
    if not inside:
        return reference
    cut = random.choice(inside)
    side = {"low": cut} if random.random() < 0.5 else {"high": cut}
    return msgspec.structs.replace(reference, **side)


def _bounds(view: Any, random: Random) -> list[bytes]:
    first = [v for v in RANGES[view.key.names[0]] if v is not None]
    with_next = [[v, "a"] for v in first] if view.key.names[1:] == ("s",) else []
    return [encode_key(v if isinstance(v, list) else [v], view.key) for v in [*first, *with_next]]
