"""The metadata in a data object's footer: enough to rebuild a pool's references from the files alone.

One key-value pair of the Parquet footer, `lake`, holds JSON; byte strings are in base64.  `sample` has evenly
spaced keys with their ranks, the numbers of their records from 0: in a sorted file that is an exact quantile
sketch.  `groups` has the first keys of the row groups, so that a reader of a key range skips the others.  `blocks`
has the checksums of the bytes before `data_end` (`checksums`).  `stored_as` has the fields whose columns have other
names in the file (`stored_names`).  `siblings` has the ids of the objects that one merge wrote for the same keys,
itself included, if there are several (`indexes.cluster`).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lake_core.errors import Corrupt
from lake_core.ids import ID_LENGTH
from lake_core.naming import SUB_POOLS
from lake_core.records.decoding import check_counts, decoding

KEY = b"lake"
VERSION = 3
"""The version of an object with `siblings`, without which a rebuild loses the records of a damaged one."""
NAMED_VERSION = 2
"""The version of an object with `stored_as`."""
PLAIN_VERSION = 1
"""The version of an object with neither; older programs read it."""
SAMPLES = 64
ALL_KEYS: tuple[bytes, bytes | None] = (b"", None)
"""The key range (`partition`) of an object that was written for all keys; it is not stored."""


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who wrote an object, and why; the caller of `objects.write` passes it."""

    lake: str
    pool_id: str = msgspec.field(name="pool")
    transaction_id: str = msgspec.field(name="transaction")
    writer: str
    job: str = ""
    inputs: tuple[str, ...] = ()


class ObjectMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the pair `lake` in a footer says about its object."""

    version: int
    object: str
    origin: Origin
    key: str
    sub_pool: str = msgspec.field(name="sub")
    schema: str
    records: int
    low: bytes
    high: bytes
    groups: tuple[bytes, ...]
    sample: tuple[tuple[int, bytes], ...]
    partition: tuple[bytes, bytes | None] = ALL_KEYS
    first_seq: int | None = None
    last_seq: int | None = None
    data_end: int = 0
    blocks: tuple[int, ...] = ()
    stored_as: dict[str, str] = {}
    siblings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_counts(
            f"the footer of {self.object[:80]!r}",
            version=self.version,
            records=self.records,
            first_seq=self.first_seq,
            last_seq=self.last_seq,
            data_end=self.data_end,
        )
        if self.sub_pool not in ("", *SUB_POOLS):
            raise Corrupt(f"the footer of {self.object[:80]!r}: there is no sub-pool {self.sub_pool[:80]!r}")
        if any(not 0 <= rank < self.records for rank, _ in self.sample):
            raise Corrupt(f"the footer of {self.object[:80]!r}: a key of the sample has an impossible rank")
        if len(set(self.stored_as.values())) < len(self.stored_as):
            raise Corrupt(f"the footer of {self.object[:80]!r}: two fields lie under one name")
        if self.siblings and self.object[:ID_LENGTH] not in self.siblings:
            raise Corrupt(f"the footer of {self.object[:80]!r}: it is none of its siblings")

    def check_version(self, name: str) -> None:
        """Raises Corrupt if a newer program wrote the object."""
        if self.version > VERSION:
            raise Corrupt(f"{name}: written by a newer version (format {self.version}); upgrade this program")

    def check(self, object_id: str, *, records: int, groups: int, name: str) -> None:
        """Raises Corrupt if this belongs to another object, or contradicts the content of its file."""
        for what, told, true_value in (
            ("object", self.object, object_id),
            ("records", self.records, records),
            ("row groups", len(self.groups), groups),
        ):
            if told != true_value:
                raise Corrupt(
                    f"{name}: the footer is damaged, or another object's: {what} {told}, not {true_value}"
                )


_DECODER = msgspec.json.Decoder(ObjectMetadata)


def encode(metadata: ObjectMetadata) -> bytes:
    """Returns the metadata in its stored form, JSON."""
    return msgspec.json.encode(metadata)


def decode(data: bytes | None, *, name: str) -> ObjectMetadata:
    """Returns the metadata of the object `name` from their stored form.  Raises Corrupt if `data` is not the
    metadata of a data object."""
    if data is None:
        raise Corrupt(f"{name}: a Parquet file without the metadata of a data object")
    with decoding(name, "the metadata of this data object is damaged"):
        decoded = _DECODER.decode(data)
    decoded.check_version(name)
    return decoded


class Sample:
    """Evenly spaced keys of a stream of records of unknown length: the key of every `step`-th record.

    If there are too many keys, every second one is dropped, and the step doubles.  So a long stream leaves
    between SAMPLES / 2 and SAMPLES keys, and a short one all of its keys.  The last record is added at the end.
    """

    def __init__(self) -> None:
        self._step = 1
        self._keys: list[tuple[int, bytes]] = []

    def wants(self, first: int, count: int) -> list[int]:
        """Returns the ranks, among the `count` records from rank `first` on, whose keys the caller must pass to
        `take`."""
        step = self._step
        while (len(self._keys) * self._step + count) // step > SAMPLES:  # it doubles
            step *= 2
        if step != self._step:
            self._step = step
            self._keys = [(rank, key) for rank, key in self._keys if rank % step == 0]
        return list(range(-(-first // step) * step, first + count, step))

    def take(self, ranked_keys: Iterable[tuple[int, bytes]]) -> None:
        """Adds the ranks and keys of wanted records."""
        self._keys += ranked_keys

    def done(self, last: int, key: bytes) -> tuple[tuple[int, bytes], ...]:
        """Returns the sample, completed with the rank and key of the last record."""
        end = [] if self._keys and self._keys[-1][0] == last else [(last, key)]
        return (*self._keys, *end)
