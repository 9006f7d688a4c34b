"""What is stored, byte by byte: each record against the bytes in `version1/`, and what is new in `version2/` and
`version3/`.

Somewhere a lake holds such bytes, and every later program must read them.  So a failure here means that the
code is wrong.  These files change only together with a format version: a new version gets a folder of its own
and its own tests of writing, and of this folder the tests of reading stay.  A new optional field with a default
adds a file and changes none.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core import naming
from lake_core.catalog import Catalog, PoolsState
from lake_core.conditions import And, Compare, Condition, In, IsNull, Not, Or
from lake_core.context import Context
from lake_core.errors import Corrupt
from lake_core.history import Draft, History
from lake_core.history.create import restored as restored_branch
from lake_core.history.group_commit.requests import DraftRequest
from lake_core.history.lift import pack
from lake_core.history.transactions.decisions import Begun, CommitLease, Decision, JoinedPool
from lake_core.journal import purge, write_state
from lake_core.journal.link import decode_stored, encode_linked
from lake_core.keys import PoolKey
from lake_core.keys.encoding import Instant, decode_key, encode_key, encode_value
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import (
    Action,
    AddField,
    AddInlined,
    AddObject,
    AddTombstone,
    BeginVacuum,
    Close,
    Column,
    ConfigurePool,
    ConfirmVacuum,
    Conserve,
    Consume,
    CreateBranch,
    CreatePool,
    DeleteBranch,
    DeletePool,
    DeleteTag,
    Discard,
    DropPool,
    EndBranch,
    EndVacuum,
    Entry,
    ForgetPool,
    Join,
    MarkApplied,
    Merge,
    PoolsEntry,
    Prepare,
    PutInlined,
    PutReference,
    PutSummed,
    PutTombstone,
    Release,
    RemoveReference,
    RemoveTombstone,
    RenameField,
    RenamePool,
    Reopen,
    RestorePool,
    ScanOrphans,
    SetMerged,
    SetSchema,
    SetTag,
    Settle,
    Source,
    Split,
    Transaction,
)
from lake_core.records.branching import Restored
from lake_core.records.codec import Codec, checksum_of
from lake_core.records.pools import PoolConfig
from lake_core.records.sums import age_sum, packed_sums
from lake_core.records.transactions import sequence
from lake_core.schemas.hidden import ORDER, ROW
from lake_core.schemas.schema import schema_id
from lake_core.values.types import JSON_MARK, WIDE_MARK
from log_lake.agents.ingest.parking import Parked
from log_lake.erasure.receipt import Held, Receipt, ReceiptObject, ReceiptTransaction
from log_lake.erasure.receipt import decode as decode_receipt
from log_lake.lake import Lake
from log_lake.leases import LeaseNote
from log_lake.objects import metadata
from log_lake.objects.containers.rows import rows_of_table
from log_lake.objects.metadata import ObjectMetadata, Origin
from log_lake.objects.read import DataObject
from log_lake.objects.write import write_object
from log_lake.settings.settings import check_pool
from log_lake.stores.memory import MemoryStore
from log_lake.where import show
from tests.support.records import KNOWN, ORIGIN, SCHEMA_ID, add, an_id, fixed_ids, transaction
from tests.support.zng_files import lines_of, zng_of

FOLDER = Path(__file__).parent / "version1"
NEWEST = Path(__file__).parent / "version2"
VERSION_3 = Path(__file__).parent / "version3"
KEY = PoolKey.parse("ts,id.orig_h:desc")


def golden(name: str) -> bytes:
    """The bytes of a file: hex text, in lines of any length."""
    return bytes.fromhex((FOLDER / name).read_text())


ENTRY = Entry(
    an_id(1),
    (
        Transaction(
            id=an_id(2),
            branch="main",
            parent=6,
            read_version=5,
            time=1_700_000_000_123_456,
            author="vera",
            message="first light",
            token="ingest:main:0123",
            actions=(
                Consume((Source("s3://landing/a.ndjson.gz", 1234, "etag", 3), Source("/landing/b", 0))),
                SetSchema("0123456789abcdef0123", b"arrow"),
                AddObject(
                    object=an_id(3),
                    records=3,
                    size=4567,
                    schema="0123456789abcdef0123",
                    low=b"\x03\x01",
                    high=b"\x03\x02\x00",
                    ordinal=1,
                    sub_pool="$nokey",
                    columns=(Column("ts", 0, b"\x03\x01", b"\x03\x02"), Column("note", 3)),
                ),
                RemoveReference(an_id(4), b"\x00"),
                AddObject(an_id(7), 3, 456, "0123456789abcdef0123", b"\x03", b"\x04", seqs=(65_536, 131_073)),
            ),
        ),
        Transaction(an_id(5), "dev", 7, 0, -1, "", (RemoveReference(an_id(6), b""),)),
    ),
)

DELETING_ENTRY = Entry(
    an_id(1),
    (
        transaction(
            AddTombstone(
                "a",
                b"\x03\x01",
                b"\x03\x02",
                And((Compare(("x",), ">", encode_value(1)), IsNull(("y", "z")))),
                reason="GDPR 17",
                replaces=True,
            ),
            AddTombstone("b", self_only=True),
            RemoveTombstone("c"),
            MarkApplied(an_id(7), b"\x03", 12),
            AddObject(an_id(8), 3, 456, "0123", b"\x03", b"\x04", seqs=(65_536, 131_073), applied=13),
            id=an_id(2),
        ),
    ),
)

BRANCHING_ENTRY = Entry(
    an_id(1),
    (
        transaction(
            CreateBranch("main", 3, 2, Restored(1, 2, 3, b"\1\0\0\0\0\0\0\0")),
            PutReference(
                object=an_id(3),
                low=b"\x03\x01",
                high=b"\x03\x02\x00",
                seq=131_073,
                records=3,
                size=4567,
                schema="0123456789abcdef0123",
                ordinal=1,
                sub_pool="$nokey",
                columns=(Column("ts", 0, b"\x03\x01", b"\x03\x02"),),
                oldest=65_536,
                applied=3,
                lifts=(196_608,),
            ),
            PutTombstone(
                "a",
                65_537,
                b"\x03",
                b"\x04",
                IsNull(("y",)),
                "GDPR 17",
                replaces=True,
                only=(65_536, 65_537),
                sub_pool="$nokey",
                settled=True,
            ),
            AddTombstone("b", only=(65_536, 65_536)),
            id=an_id(2),
            branch="dev",
            metadata={"dag": "lake_compact", "try": "1"},
        ),
        transaction(Merge("dev", 7, 2, 3, b"\0\0\1\0\0\0\0\0\1\0\1\0\0\0\0\0"), id=an_id(3), parent=3),
        transaction(
            SetMerged("dev", 8, 2, 3, b"\0\0\1\0\0\0\0\0", (PutTombstone("c", 65_536, settled=True),)),
            Release((Source("a", 3, "e", 2),)),
            id=an_id(4),
            parent=4,
        ),
        transaction(DeleteBranch("dev@8", 8), id=an_id(5), branch="dev", parent=7),
        transaction(
            SetTag("v1", 8, "main", "audit", 1_700_000_000_000_000),
            DeleteTag("v0"),
            id=an_id(6),
            branch="",
        ),
    ),
)

CLOSING_ENTRY = Entry(
    an_id(16),
    (
        transaction(
            Close(), id=an_id(16), parent=3, read_version=3, time=1_700_000_000_000_000, message="drop"
        ),
    ),
)

POOLS_ENTRY = PoolsEntry(
    an_id(1),
    1_700_000_000_123_456,
    "vera",
    (
        CreatePool(
            PoolConfig(an_id(2), "fl\u00fcge", KEY, "append", {"type.ts": "double", "description": "x"})
        ),
        CreatePool(PoolConfig(an_id(3), "plain", PoolKey.parse("k"))),
        ConfigurePool(an_id(2), {"bad_records": "quarantine", "description": ""}),
        RenamePool(an_id(2), "flights"),
        DropPool(an_id(3)),
    ),
)

RESTORING_ENTRY = PoolsEntry(
    an_id(4),
    1_700_000_000_123_457,
    "vera",
    (
        RestorePool(an_id(3), "again"),
        DropPool(an_id(3)),
        DropPool(an_id(2)),
        DeletePool(an_id(2)),
        CreatePool(PoolConfig(an_id(5), "gone", PoolKey.parse("k"))),
        DropPool(an_id(5)),
        DeletePool(an_id(5)),
        ForgetPool(an_id(5)),
    ),
)

REOPENING_ENTRY = Entry(
    an_id(17), (transaction(Reopen(4), id=an_id(17), parent=4, read_version=4, message="restore"),)
)


def test_a_journal_entry_has_the_stored_bytes_both_ways() -> None:
    codec = Codec(Entry, version=1)
    assert codec.decode(golden("entry.hex"), name="entry") == ENTRY
    assert codec.encode(ENTRY).hex() == golden("entry.hex").hex()


def test_a_journal_entry_with_its_checksum() -> None:
    codec = Codec(Entry)
    stored = bytes.fromhex((NEWEST / "entry.hex").read_text())
    assert codec.decode(stored, name="entry") == ENTRY
    assert codec.encode(ENTRY).hex() == stored.hex()


@pytest.mark.parametrize(
    ("name", "entry"),
    [("linked_entry.hex", REOPENING_ENTRY), ("linked_pools_entry.hex", RESTORING_ENTRY)],
)
def test_an_entry_that_names_the_one_before_it(name: str, entry: Entry | PoolsEntry) -> None:
    codec: Codec[Any] = Codec(type(entry))
    stored = bytes.fromhex((NEWEST / name).read_text())
    linked = encode_linked(codec, entry, previous=checksum_of(golden("entry.hex")))
    assert linked.data.hex() == stored.hex()
    assert decode_stored(codec, stored, name="entry") == linked
    assert linked.entry.previous == zlib.crc32(golden("entry.hex")[4:])
    assert linked.checksum == int.from_bytes(stored[4:8], "big")


def test_an_entry_of_a_lake_of_version_1_names_none() -> None:
    linked = encode_linked(Codec(Entry, version=1), ENTRY, previous=7)
    assert linked.data.hex() == golden("entry.hex").hex()


def test_a_journal_entry_that_deletes() -> None:
    codec = Codec(Entry, version=1)
    assert codec.decode(golden("deleting_entry.hex"), name="entry") == DELETING_ENTRY
    assert codec.encode(DELETING_ENTRY).hex() == golden("deleting_entry.hex").hex()


@pytest.mark.parametrize(
    ("name", "entry"), [("reopening_entry.hex", REOPENING_ENTRY), ("restoring_entry.hex", RESTORING_ENTRY)]
)
def test_the_entries_of_a_restored_pool(name: str, entry: Entry | PoolsEntry) -> None:
    codec: Codec[Any] = Codec(type(entry))
    stored = bytes.fromhex((NEWEST / name).read_text())
    assert codec.decode(stored, name="entry") == entry
    assert codec.encode(entry).hex() == stored.hex()


def test_a_journal_entry_of_branches_and_tags() -> None:
    codec = Codec(Entry)
    stored = bytes.fromhex((NEWEST / "branching_entry.hex").read_text())
    assert codec.decode(stored, name="entry") == BRANCHING_ENTRY
    assert codec.encode(BRANCHING_ENTRY).hex() == stored.hex()


def test_a_journal_entry_that_ends_the_history_of_a_dropped_pool() -> None:
    codec = Codec(Entry, version=1)
    assert codec.decode(golden("closing_entry.hex"), name="entry") == CLOSING_ENTRY
    assert codec.encode(CLOSING_ENTRY).hex() == golden("closing_entry.hex").hex()


VACUUM_ENTRY = Entry(
    an_id(30),
    (
        transaction(
            ScanOrphans(an_id(31), an_id(32)),
            Discard((an_id(33), an_id(34)), (5, 6), never_read=True, scanned=an_id(31)),
            BeginVacuum((an_id(33), an_id(34))),
            ConfirmVacuum(131_072, (an_id(34),)),
            EndVacuum(131_072),
            id=an_id(35),
            branch="",
        ),
    ),
)


def test_an_entry_that_deletes_objects() -> None:
    stored = bytes.fromhex((NEWEST / "vacuum_entry.hex").read_text())
    assert Codec(Entry).encode(VACUUM_ENTRY) == stored
    assert Codec(Entry).decode(stored, name="x") == VACUUM_ENTRY


SPLITTING_ENTRY = Entry(
    an_id(36),
    (
        transaction(Split((encode_value(1), encode_value(5))), id=an_id(37), branch=""),
        transaction(Join((encode_value(1),)), id=an_id(38), branch=""),
    ),
)


def test_an_entry_of_split_points() -> None:
    stored = bytes.fromhex((VERSION_3 / "splitting_entry.hex").read_text())
    assert Codec(Entry, version=3).encode(SPLITTING_ENTRY) == stored
    assert Codec(Entry, version=3).decode(stored, name="x") == SPLITTING_ENTRY


RENAMING_ENTRY = Entry(
    an_id(36),
    (
        transaction(RenameField("user", "account"), id=an_id(37), branch=""),
        transaction(RenameField("note"), id=an_id(38), branch=""),
    ),
)


def test_an_entry_that_renames_and_drops_fields() -> None:
    stored = bytes.fromhex((VERSION_3 / "renaming_entry.hex").read_text())
    assert Codec(Entry, version=3).encode(RENAMING_ENTRY) == stored
    assert Codec(Entry, version=3).decode(stored, name="x") == RENAMING_ENTRY


ADDING_ENTRY = Entry(an_id(39), (transaction(AddField("account", "decimal(10,2)"), id=an_id(40), branch=""),))


def test_an_entry_that_adds_a_field() -> None:
    stored = bytes.fromhex((VERSION_3 / "adding_entry.hex").read_text())
    assert Codec(Entry, version=3).encode(ADDING_ENTRY) == stored
    assert Codec(Entry, version=3).decode(stored, name="x") == ADDING_ENTRY


PREPARING_ENTRY = Entry(
    an_id(50),
    (
        transaction(
            Prepare(an_id(51), f"tx-{an_id(51)}", "main", an_id(52), upto=6, token="transaction:t"),
            id=an_id(53),
            branch="",
        ),
    ),
)
SETTLING_ENTRY = Entry(
    an_id(52),
    (
        transaction(
            Merge(f"tx-{an_id(51)}", 6, 0, 0, pack([6 * 65536])),
            Settle(an_id(51), True, {an_id(54): 9}),
            id=an_id(52),
            parent=4,
        ),
        transaction(Settle(an_id(55)), id=an_id(56), branch=""),
        transaction(EndBranch(8), id=an_id(57), branch=f"tx-{an_id(51)}", parent=6),
    ),
)


@pytest.mark.parametrize(
    ("name", "entry"), [("preparing_entry", PREPARING_ENTRY), ("settling_entry", SETTLING_ENTRY)]
)
def test_an_entry_of_a_transaction_over_pools(name: str, entry: Entry) -> None:
    stored = bytes.fromhex((VERSION_3 / f"{name}.hex").read_text())
    assert Codec(Entry, version=3).encode(entry) == stored
    assert Codec(Entry, version=3).decode(stored, name="x") == entry


OBJECTS_OF_TRANSACTIONS = {
    "begun": Begun("vera", 1, 2, "t", "m", {"dag": "d"}),
    "joined": JoinedPool("main"),
    "lease": CommitLease("vera", 30.0),
    "decision": Decision(True, "vera", 3, {an_id(54): 9}),
}


def test_the_objects_of_a_transaction_over_pools() -> None:
    stored = json.loads((VERSION_3 / "transaction_objects.json").read_text())
    encoded = {name: json.loads(msgspec.json.encode(one)) for name, one in OBJECTS_OF_TRANSACTIONS.items()}
    assert encoded == stored
    for name, one in OBJECTS_OF_TRANSACTIONS.items():
        assert msgspec.json.decode(json.dumps(stored[name]), type=type(one)) == one


INLINING_ENTRY = Entry(
    an_id(41),
    (
        transaction(
            AddInlined(
                object=an_id(42),
                records=2,
                size=5,
                schema=SCHEMA_ID,
                low=encode_value(0),
                high=encode_value(10),
                columns=(Column("k", 0, encode_value(0), encode_value(9)),),
                data=b"bytes",
            ),
            id=an_id(43),
            parent=3,
        ),
        transaction(
            PutInlined(
                object=an_id(44),
                low=encode_value(1),
                high=encode_value(2),
                seq=sequence(2),
                records=1,
                size=3,
                schema=SCHEMA_ID,
                data=b"two",
            ),
            id=an_id(45),
            parent=4,
        ),
    ),
)


def test_an_entry_of_inlined_objects() -> None:
    stored = bytes.fromhex((VERSION_3 / "inlining_entry.hex").read_text())
    assert Codec(Entry, version=3).encode(INLINING_ENTRY) == stored
    assert Codec(Entry, version=3).decode(stored, name="x") == INLINING_ENTRY


CONSERVING_ENTRY = Entry(
    an_id(47),
    (
        transaction(
            add(48, 0, 9, records=3, content=bytes(range(8))),
            PutSummed(
                object=an_id(49),
                low=encode_value(1),
                high=encode_value(2),
                seq=sequence(2),
                records=1,
                size=3,
                schema=SCHEMA_ID,
                oldest=sequence(1),
                content=bytes(range(16)),
            ),
            id=an_id(50),
            parent=3,
        ),
        transaction(
            RemoveReference(an_id(48), add(48).low),
            add(51, 0, 5, records=2, seqs=(sequence(4), sequence(4)), content=bytes(7) + b"\5" + bytes(8)),
            Conserve(1, packed_sums(0x0001020304050607 - 5, age_sum(sequence(4), 0, records=3))),
            id=an_id(52),
            parent=4,
        ),
    ),
)


def test_an_entry_of_a_rewriting_that_conserves_sums() -> None:
    stored = bytes.fromhex((VERSION_3 / "conserving_entry.hex").read_text())
    assert Codec(Entry, version=3).encode(CONSERVING_ENTRY) == stored
    assert Codec(Entry, version=3).decode(stored, name="x") == CONSERVING_ENTRY


def test_a_lease() -> None:
    note = LeaseNote("write", 7, "vera", 600.0, "load", an_id(1), {"run": "r"})
    stored = (NEWEST / "lease.json").read_bytes().rstrip(b"\n")
    assert note.encode() == stored
    assert msgspec.json.decode(stored, type=LeaseNote) == note


def test_the_receipt_of_an_erasure() -> None:
    receipt = Receipt(
        format=1,
        id=an_id(1),
        lake=an_id(2),
        pool_id=an_id(3),
        pool="p",
        sub_pool="",
        low=b"\x01",
        high=None,
        where="who = 'ann'",
        author="vera",
        version_before=4,
        begun=1_770_000_000_000_000,
        status="done",
        ended=1_770_000_001_000_000,
        version=9,
        transactions=(ReceiptTransaction(6, an_id(4), 7, "main", "rewrite", (an_id(5),), (an_id(6),)),),
        erased=(ReceiptObject(an_id(5), 10, "ab" * 32),),
        written=(ReceiptObject(an_id(6), 8, "cd" * 32),),
        held=(Held(an_id(5), "tag t"),),
        not_searched={"$rejected": 2},
        purged=9,
        statement="none",
    )
    stored = (NEWEST / "receipt.json").read_bytes()
    assert receipt.encode() == stored
    assert decode_receipt(stored, name="x") == receipt


def test_the_receipt_of_an_erasure_that_means_only_what_was_there_has_format_2() -> None:
    receipt = Receipt(1, an_id(1), an_id(2), an_id(3), "p", "", b"", None, "n = 1", "vera", 4, 5, until=9)
    stored = (NEWEST / "receipt_until.json").read_bytes()
    assert receipt.encode() == stored
    assert decode_receipt(stored, name="x") == msgspec.structs.replace(receipt, format=2)
    newer = stored.replace(b'"format": 2', b'"format": 3')
    with pytest.raises(Corrupt, match="upgrade this program"):
        decode_receipt(newer, name="x")


def test_an_entry_of_the_journal_of_pools() -> None:
    codec = Codec(PoolsEntry, version=1)
    assert codec.decode(golden("pools_entry.hex"), name="entry") == POOLS_ENTRY
    assert codec.encode(POOLS_ENTRY).hex() == golden("pools_entry.hex").hex()


def test_the_head_of_a_lake() -> None:
    store = MemoryStore()
    made = Lake.create_on(store, ids=fixed_ids())
    stored = (VERSION_3 / "lake.json").read_bytes()
    assert store.get("lake.json") == stored
    store.put("lake.json", stored)
    assert Lake.open_on(store).id == made.id == json.loads(stored)["id"]


@pytest.mark.parametrize(("folder", "version"), [(FOLDER, 1), (NEWEST, 2)])
def test_the_head_of_an_older_lake_is_upgraded(folder: Path, version: int) -> None:
    store = MemoryStore()
    old = (folder / "lake.json").read_bytes()
    store.put("lake.json", old)
    lake = Lake.open_on(store)
    assert (lake.id, lake.context.format_version) == (json.loads(old)["id"], version)
    assert lake.upgrade() == (version, 3)
    raised = old.replace(b'"version": %d' % version, b'"version": 3')
    assert store.get("lake.json") == raised.replace(b'"\n}', b'",\n "upgraded": true\n}')
    assert Lake.open_on(store).context.format_version == 3


KEYS: dict[str, Any] = {
    "null": None,
    "false": False,
    "true": True,
    "0": 0,
    "-1": -1,
    "1.5": 1.5,
    "2^53 + 1": 2**53 + 1,
    "2^64 - 1": 2**64 - 1,
    "-2^63": -(2**63),
    "-infinity": float("-inf"),
    "nan": float("nan"),
    "decimal -12.50": decimal.Decimal("-12.50"),
    "empty bytes": b"",
    "bytes 00 ff 61": b"\x00\xffa",
    "empty string": "",
    "string a 00 e-acute": "a\0\u00e9",
    "date 2013-01-02": dt.date(2013, 1, 2),
    "timestamp 1969-12-31T23:59:59.5": Instant((0x08, -1, 500_000_000)),
    "timestamp 2013-01-02T03:04:05.000000006Z": Instant((0x09, 1_357_095_845, 6)),
    "time 00:01:01": Instant((0x0A, 61, 0)),
    "duration -1s": Instant((0x0B, -1, 0)),
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_a_key_has_the_stored_bytes_both_ways(name: str, direction: str) -> None:
    key = PoolKey.parse(f"k:{direction}")
    stored = json.loads((FOLDER / "keys.json").read_text())[name][direction]
    assert encode_key([KEYS[name]], key).hex() == stored
    assert repr(decode_key(bytes.fromhex(stored), key)[0]) in (
        repr(KEYS[name]),
        repr(plain_decimal(KEYS[name])),
    )


def plain_decimal(value: Any) -> Any:
    return value.normalize() if isinstance(value, decimal.Decimal) else value


def test_every_golden_key_is_tested() -> None:
    assert set(json.loads((FOLDER / "keys.json").read_text())) == set(KEYS)


CONDITIONS: dict[str, Condition] = {
    "a = 1": Compare(("a",), "=", encode_value(1)),
    "a != null": Compare(("a",), "!=", encode_value(None)),
    "a < 1.5e0": Compare(("a",), "<", encode_value(1.5)),
    "a <= 12.5": Compare(("a",), "<=", encode_value(decimal.Decimal("12.5"))),
    "a > x'00ff'": Compare(("a",), ">", encode_value(b"\0\xff")),
    "id.orig_h >= 'é'": Compare(("id.orig_h",), ">=", encode_value("é")),
    '"r"."x.y" in (null, 1, 2)': In(("r", "x.y"), tuple(encode_value(v) for v in (None, 1, 2))),
    "a is not null or (b = true and c = date '2026-01-31')": Or(
        (
            Not(IsNull(("a",))),
            And(
                (
                    Compare(("b",), "=", encode_value(True)),
                    Compare(("c",), "=", encode_value(dt.date(2026, 1, 31))),
                )
            ),
        )
    ),
    "t = timestamp '1969-12-31T23:59:59.5Z'": Compare(
        ("t",), "=", encode_value(Instant((0x09, -1, 500_000_000)))
    ),
}
"""By their text, which is not stored."""


@pytest.mark.parametrize("text", CONDITIONS)
def test_a_condition_has_the_stored_bytes_both_ways_and_its_text(text: str) -> None:
    stored = bytes.fromhex(json.loads((FOLDER / "conditions.json").read_text())[text])
    assert msgspec.msgpack.decode(stored, type=Condition) == CONDITIONS[text]
    assert msgspec.msgpack.encode(CONDITIONS[text], order="deterministic").hex() == stored.hex()
    assert show(CONDITIONS[text]) == text


def test_every_golden_condition_is_tested() -> None:
    assert set(json.loads((FOLDER / "conditions.json").read_text())) == set(CONDITIONS)


READ = Or(
    (
        Compare(("j",), "<", encode_value("2026-01-31"), (encode_value(dt.date(2026, 1, 31)),)),
        In(("j",), (encode_value(None), encode_value("AP8=")), (encode_value(b"\0\xff"),)),
    )
)


def test_a_condition_on_a_field_of_json() -> None:
    assert msgspec.msgpack.decode(golden("condition_with_readings.hex"), type=Condition) == READ
    stored = msgspec.msgpack.encode(READ, order="deterministic")
    assert stored.hex() == golden("condition_with_readings.hex").hex()


METADATA = ObjectMetadata(
    version=1,
    object=an_id(3),
    origin=Origin("lake", "pool", an_id(2), "vera", job="job", inputs=(an_id(8), an_id(9))),
    key="ts,id.orig_h:desc",
    sub_pool="$nokey",
    schema="0123456789abcdef0123",
    records=3,
    low=b"\x03\x01",
    high=b"\x03\x02\x00",
    groups=(b"\x03\x01",),
    sample=((0, b"\x03\x01"), (2, b"\x03\x02")),
    partition=(b"\x00", b"\xff"),
    first_seq=65_536,
    last_seq=131_073,
)


def test_the_metadata_of_a_data_object() -> None:
    stored = (FOLDER / "object_metadata.json").read_bytes().rstrip(b"\n")
    assert metadata.decode(stored, name="object") == METADATA
    assert metadata.encode(METADATA) == stored


def test_the_metadata_that_a_load_writes_has_these_keys() -> None:
    store = MemoryStore()
    made = write_object(
        store, pa.table({"k": [1]}), key=PoolKey.parse("k"), object_id=an_id(1), origin=ORIGIN
    )
    assert made.action.object == an_id(1)
    with store.open_input(f"pool/data/{an_id(1)}.parquet") as file:
        footer = pq.ParquetFile(file).metadata.metadata
    assert sorted(footer) == [b"ARROW:schema", b"lake", b"lake.crc32"]
    written = msgspec.json.decode(footer[b"lake"])
    optional = {"partition", "first_seq", "last_seq"}
    stored = json.loads((FOLDER / "object_metadata.json").read_text())
    assert list(written) == [*(name for name in stored if name not in optional), "data_end", "blocks"]
    assert list(written["origin"]) == [name for name in stored["origin"] if name not in ("job", "inputs")]


def test_the_checksums_of_a_data_object() -> None:
    store = MemoryStore()
    write_object(store, pa.table({"k": [1]}), key=PoolKey.parse("k"), object_id=an_id(1), origin=ORIGIN)
    data = store.get(f"pool/data/{an_id(1)}.parquet") or b""
    footer = pq.ParquetFile(pa.BufferReader(data)).metadata.metadata
    described, said = metadata.decode(footer[b"lake"], name="object"), footer[b"lake.crc32"]
    end = described.data_end
    assert described.blocks == (zlib.crc32(data[:end]),)
    zeros = data[end:].replace(b"lake.crc32\x18\x08" + said, b"lake.crc32\x18\x08" + b"0" * 8)
    assert said == f"{zlib.crc32(zeros):08x}".encode()


TYPED = """{k:1,name:"hen",legs:2(int8)}
{k:2,ip:10.0.0.1,seen:[1((int64,string)),"two"((int64,string))]}(=sighting)
"""


@pytest.mark.parametrize("format", ["zng", "zst"])
@pytest.mark.parametrize("compacted", [False, True], ids=["of a load", "of a compaction"])
def test_the_objects_that_keep_the_types_of_records(format: str, compacted: bool) -> None:
    """Read, not compared: the bytes of LZ4 and zstd are those of their versions."""
    stored = (NEWEST / f"object{'_compacted' * compacted}.{format}").read_bytes()
    store, id = MemoryStore(), f"{an_id(1)}.{format}"
    store.put(f"pool/data/{id}", stored)
    with DataObject(store, pool_id="pool", object_id=id) as data:
        data.check_bytes()
        names = [*ROW.names, *(ORDER.names if compacted else [])]
        (batch,) = data.batches(EVERYTHING, key=PoolKey.parse("k"), columns=[*data.schema.names, *ROW.names])
        assert set(names) <= set(batch.schema.names)
        assert lines_of(zng_of([rows_of_table(pa.Table.from_batches([batch]))])) == TYPED.split("\n")[:2]
        assert batch.column("legs").to_pylist() == [2, None]
        if compacted:
            assert batch.column("_seq").to_pylist() == [65_536, 131_072]


REQUEST = DraftRequest(
    id=an_id(2),
    possible_since=41,
    time=1_700_000_000_123_456,
    branch="main",
    read_version=40,
    author="vera",
    actions=ENTRY.transactions[0].actions,
    schemas=(b"arrow",),
    message="first light",
    token="ingest:main:0123",
)


def test_a_request_has_the_stored_bytes_both_ways() -> None:
    codec = Codec(DraftRequest, version=1)
    assert codec.decode(golden("request.hex"), name="request") == REQUEST
    assert codec.encode(REQUEST).hex() == golden("request.hex").hex()


def test_the_note_of_a_parked_file() -> None:
    note = (FOLDER / "parked.json").read_bytes().rstrip(b"\n")
    parked = Parked(
        file="s3://landing/logs/a.ndjson.gz",
        size=1234,
        etag="9bb58f26192e4ba00f01e2e7b136bbd8",
        branch="main",
        why="s3://landing/logs/a.ndjson.gz, line 3: not JSON",
        time=1_700_000_000.5,
        settings="0" * 32,
    )
    assert msgspec.json.decode(note, type=Parked) == parked
    assert msgspec.json.encode(parked) == note
    assert naming.parked("p", "0" * 32) == f"p/parked/{'0' * 32}.json"


def test_the_names_of_checkpoints_fences_requests_and_hints() -> None:
    assert naming.checkpoint("p/journal", 42, "2Zk1abcdefghijklmnopqrstuvw") == (
        "p/journal/marks/00000000000000000042.pqrstuvw.checkpoint"
    )
    assert naming.fence("p/journal", 42) == "p/journal/marks/00000000000000000042.fence"
    assert naming.activity(an_id(3)) == "activity/000000000000000000000000003"
    assert naming.begun(naming.pool_journal(an_id(3))) == "000000000000000000000000003/journal-begun"
    assert naming.begun(naming.POOLS_JOURNAL) == "pools-begun"
    assert naming.gate(naming.POOLS_JOURNAL, 42) == "pools-gates/00000000000000000042.gate"
    assert naming.quiet("compact", "0" * 16) == f"quiet/compact.{'0' * 16}.json"
    assert naming.request("p/journal", an_id(2)) == "p/journal/requests/000000000000000000000000002.txn"


HISTORY = (
    Entry(
        an_id(11),
        (
            transaction(
                KNOWN,
                add(21, 0, 5, ordinal=1),
                Consume((Source("a", 3, "e", 2),)),
                id=an_id(11),
                token="t",
                time=1_700_000_000_000_000,
            ),
        ),
    ),
    Entry(
        an_id(12),
        (
            transaction(add(22, 3, 9, columns=(Column("k", 1, b"\x03\x01", None),)), id=an_id(12), parent=1),
            transaction(
                add(23, 0, 1, sub_pool="$nokey", records=7), id=an_id(13), parent=2, token="u", time=9
            ),
        ),
    ),
    Entry(
        an_id(14),
        (
            transaction(
                RemoveReference(an_id(21), add(21).low),
                add(24, 0, 5, seqs=(65_536, 65_537), applied=1),
                AddTombstone(f"{an_id(14)}-1", add(21).low, None, Compare(("k",), "<", encode_value(3)), "x"),
                AddTombstone(f"{an_id(14)}-2", replaces=True),
                id=an_id(14),
                parent=2,
            ),
            transaction(RemoveTombstone(f"{an_id(14)}-2"), id=an_id(15), parent=3),
        ),
    ),
)


def pool_history(store: MemoryStore) -> History:
    history = History(store, pool_id="p", key=PoolKey.parse("k"), clock=lambda: 0.0, token_keep=1e12)
    for n, entry in enumerate(HISTORY, start=1):
        store.create(naming.entry("p/journal", n), Codec(Entry, version=1).encode(entry))
    return history


def closed_history(store: MemoryStore) -> History:
    store.create(naming.entry("p/journal", 4), Codec(Entry, version=1).encode(CLOSING_ENTRY))
    return pool_history(store)


def reopened_history(store: MemoryStore) -> History:
    store.create(naming.entry("p/journal", 5), Codec(Entry).encode(REOPENING_ENTRY))
    return closed_history(store)


def split_history(store: MemoryStore) -> History:
    store.create(naming.entry("p/journal", 4), Codec(Entry, version=3).encode(SPLITTING_ENTRY))
    return pool_history(store)


def inlined_history(store: MemoryStore) -> History:
    store.create(naming.entry("p/journal", 4), Codec(Entry, version=3).encode(INLINING_ENTRY))
    return pool_history(store)


def summed_history(store: MemoryStore) -> History:
    store.create(naming.entry("p/journal", 4), Codec(Entry, version=3).encode(CONSERVING_ENTRY))
    return pool_history(store)


def prepared_history(store: MemoryStore) -> History:
    """A history with a pending part, and with what it knows of another pool from one that was settled."""
    history = pool_history(store)

    def commit(n: int, *actions: Action, branch: str = "") -> None:
        schemas = (pa.schema([("k", pa.int64())]),)
        history.commit(Draft(an_id(n), branch, history.load().version, "vera", actions, schemas))

    for n in (60, 70):
        over, on = an_id(n), f"tx-{an_id(n)}"
        commit(n + 1, CreateBranch("main"), branch=on)
        low, high = encode_value(n), encode_value(n + 1)
        added = AddObject(an_id(n + 2), 1, 9, schema_id(pa.schema([("k", pa.int64())])), low, high)
        commit(n + 3, added, branch=on)
        commit(n + 4, Prepare(over, on, "main", an_id(n + 5)))
        if n == 60:
            history.settle(over, Decision(True, "vera", 0, {an_id(99): 7}))
    return history


def pools(store: MemoryStore) -> Catalog:
    catalog = Catalog(Context(store, "", fixed_ids(), "vera"), check=check_pool)
    store.create(naming.entry("pools", 1), Codec(PoolsEntry, version=1).encode(POOLS_ENTRY))
    return catalog


def dropped_pools(store: MemoryStore) -> Catalog:
    catalog = pools(store)
    store.create(naming.entry("pools", 2), Codec(PoolsEntry).encode(RESTORING_ENTRY))
    return catalog


def branched_history(store: MemoryStore) -> History:
    """A history with a branch that was compacted and merged, one that is half merged, a deleted one, and tags."""
    history = pool_history(store)

    def commit(n: int, *actions: Action, branch: str = "main", **fields: Any) -> None:
        read = history.load().version
        schemas = (pa.schema([("k", pa.int64())]),)
        history.commit(Draft(an_id(n), branch, read, "vera", actions, schemas, **fields))

    history = History(store, pool_id="p", key=PoolKey.parse("k"), clock=lambda: 7.0, token_keep=1e12)
    commit(31, CreateBranch("main"), branch="dev")
    commit(32, add(32, 0, 3), Consume((Source("b", 3, "e"),)), branch="dev")
    commit(33, AddTombstone("dev-1", replaces=True), branch="dev")
    commit(34, add(34, 0, 3), branch="dev")
    compacted = add(35, 0, 3, seqs=(sequence(5), sequence(7)), records=2, applied=7)
    removed = (RemoveReference(an_id(n), add(n, 0, 3).low) for n in (32, 34))
    commit(35, *removed, compacted, branch="dev")
    commit(36, Merge("dev", 8))
    commit(37, add(37, 2, 4), branch="dev")
    commit(38, CreateBranch("dev"), branch="gone")
    commit(39, Consume((Source("c", 3, "e"),)), branch="gone")
    commit(40, DeleteBranch("gone@12", 12), branch="gone")
    commit(41, SetTag("v1", 9, "main", "audit", 1_900_000_000_000_000), branch="")
    commit(42, CreateBranch("dev"), branch="retired")
    commit(43, AddTombstone("r-1", add(37, 90, 91).low, None), branch="retired")
    commit(44, RemoveTombstone("r-1"), branch="retired")
    return history


def restored_branch_history(store: MemoryStore) -> History:
    history = branched_history(store)
    gone, loaded = history.load_version(12).state.branches["gone"].fork, history.load()
    assert gone is not None
    back = CreateBranch("dev", loaded.state.branches["dev"].tip, gone.at, restored_branch(gone))
    history.commit(Draft(an_id(45), "gone", loaded.version, "vera", (back,)))
    return history


CHECKPOINTS: dict[str, Callable[[MemoryStore], History | Catalog]] = {
    "checkpoint": pool_history,
    "closed_checkpoint": closed_history,
    "branched_checkpoint": branched_history,
    "restored_branch_checkpoint": restored_branch_history,
    "reopened_checkpoint": reopened_history,
    "split_checkpoint": split_history,
    "inlined_checkpoint": inlined_history,
    "prepared_checkpoint": prepared_history,
    "summed_checkpoint": summed_history,
    "pools_checkpoint": pools,
    "dropped_pools_checkpoint": dropped_pools,
}
ONLY_VERSION_2 = (
    "branched_checkpoint",
    "restored_branch_checkpoint",
    "reopened_checkpoint",
    "dropped_pools_checkpoint",
)
"""Checkpoints that no lake of version 1 has."""
ONLY_VERSION_3 = ("split_checkpoint", "inlined_checkpoint", "prepared_checkpoint", "summed_checkpoint")
"""Checkpoints that no lake of version 2 has."""


def content(data: bytes) -> Any:
    """What a checkpoint holds: columns, the footer's pairs, all rows."""
    file = pq.ParquetFile(pa.BufferReader(data))
    footer = file.metadata.metadata
    checksum = footer[b"lake.crc32"].decode()
    assert checksum == f"{zlib.crc32(footer[b'lake']):08x}"
    rows = [
        {
            name: value.hex() if isinstance(value, bytes) else value
            for name, value in row.items()
            if value is not None
        }
        for row in file.read().to_pylist()
    ]
    return {
        "columns": {field.name: str(field.type) for field in file.schema_arrow},
        "footer": json.loads(footer[b"lake"]),
        "rows": rows,
    }


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_holds_the_stored_rows(name: str) -> None:
    store = MemoryStore()
    journal = CHECKPOINTS[name](store).journal
    mark = write_state(journal, journal.load(), id=an_id(77), now=0.0)
    folder = VERSION_3 if name in ONLY_VERSION_3 else NEWEST
    assert content(store.get(mark.name) or b"") == json.loads((folder / f"{name}.json").read_text())


def test_a_checkpoint_of_a_lake_of_version_1_has_the_footer_of_version_1() -> None:
    store = MemoryStore()
    pool_history(store)
    journal = History(store, pool_id="p", key=PoolKey.parse("k"), clock=lambda: 0.0, format_version=1).journal
    mark = write_state(journal, journal.load(), id=an_id(77), now=0.0)
    footers = [content(data)["footer"] for data in (store.get(mark.name) or b"", golden("checkpoint.hex"))]
    for footer in footers:
        del footer["groups"]
    assert footers[0] == footers[1]


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_stored_checkpoint_is_read_as_what_it_was(name: str) -> None:
    stored, whole = MemoryStore(), MemoryStore()
    journal, folded = CHECKPOINTS[name](stored).journal, CHECKPOINTS[name](whole).journal.load()
    kept = naming.checkpoint(journal.name, folded.version, an_id(77))
    folder = VERSION_3 if name in ONLY_VERSION_3 else NEWEST if name in ONLY_VERSION_2 else FOLDER
    stored.put(kept, bytes.fromhex((folder / f"{name}.hex").read_text()))
    (mark,) = journal.marks().checkpoints
    restored = journal.restore(mark)
    assert sorted(restored.recent.items()) == sorted(folded.recent.items())
    if isinstance(restored.state, PoolsState):
        assert dict(restored.state.pools) == dict(folded.state.pools)
        assert dict(restored.state.names) == dict(folded.state.names)
        if name in ONLY_VERSION_2:
            assert dict(restored.state.dropped) == dict(folded.state.dropped)
        return
    ours, theirs = restored.state, folded.state
    for sub in ("", "$nokey"):
        assert ours.branches["main"].snapshot.overlapping(sub_pool=sub) == theirs.branches[
            "main"
        ].snapshot.overlapping(sub_pool=sub)
    assert dict(ours.tokens.items()) == dict(theirs.tokens.items())
    assert dict(ours.sources.items()) == dict(theirs.sources.items())
    assert dict(ours.schemas) == dict(theirs.schemas)
    assert set(ours.pool_schemas) == set(theirs.pool_schemas)
    assert (ours.closed, ours.reopened) == (theirs.closed, theirs.reopened)
    assert {name: held.fork for name, held in ours.branches.items()} == {
        name: held.fork for name, held in theirs.branches.items()
    }
    for branch, held in theirs.branches.items():
        assert dict(ours.branches[branch].tombstones) == dict(held.tombstones)
        assert dict(ours.branches[branch].settled) == dict(held.settled)
    assert dict(ours.tags) == dict(theirs.tags)
    assert ours.points == theirs.points
    assert dict(ours.lifts) == dict(theirs.lifts)
    assert (dict(ours.pending), dict(ours.prepared)) == (dict(theirs.pending), dict(theirs.prepared))


def test_a_fence_says_its_number() -> None:
    store = MemoryStore()
    journal = pool_history(store).journal
    write_state(journal, journal.load(), id=an_id(77), now=0.0)
    purge(journal, until=3)
    assert store.get("p/journal/marks/00000000000000000003.fence") == b"3"
    assert store.get("p/journal/TAIL") == b"4"


SCHEMA = pa.schema(
    [
        pa.field("ts", pa.timestamp("us", "UTC")),
        pa.field("n", pa.int64(), metadata=WIDE_MARK),
        pa.field("v", pa.string(), metadata=JSON_MARK),
        pa.field("r", pa.struct([("l", pa.list_(pa.float64()))])),
    ]
)


def test_a_schema_and_its_id() -> None:
    stored = golden("schema.hex")
    assert pa.ipc.read_schema(pa.py_buffer(stored)).equals(SCHEMA, check_metadata=True)
    assert SCHEMA.serialize().to_pybytes().hex() == stored.hex()
    assert schema_id(SCHEMA) == json.loads((FOLDER / "schema_id.json").read_text())
