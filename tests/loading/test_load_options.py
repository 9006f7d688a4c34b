"""What a load accepts and refuses as a whole, what it would do, and what becomes of bad records."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from tests.support.command import DONE, INVALID_INPUT, Command
from tests.support.files import parquet


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "K,a\n1,2\n"),
        ("a.ndjson", '{"K":1}\n{"a":1}\n'),
        ("a.ndjson", '{"k":null}\n'),
        ("a.parquet", parquet(pa.table({"K": [1]}))),
    ],
)
def test_a_file_in_which_no_record_has_the_key_is_refused_unless_asked_for(
    lake: Command, name: str, content: str | bytes
) -> None:
    lake.pool("p")
    good, bad = lake.file("good.ndjson", [{"k": 1}]), lake.file(name, content)
    message = lake.refuses("p", good, bad)
    assert f"{name}: no record has the key field 'k'" in message
    done = lake("load", "p", good, bad, "--nokey", "accept", "--json").records[0]
    assert (done["records"], done["nokey"]) == (1, len(lake.scan("p.$nokey")))
    lake("set", "p", "nokey=accept")
    lake("load", "p", bad)


def test_one_record_with_the_key_is_enough_wherever_in_the_file_it_is(lake: Command) -> None:
    lake.pool("p")
    lines = [{"a": i} for i in range(2_000_000 // 4)] + [{"k": 1}]
    assert (
        lake.load_records("p", "".join(f'{{"a":{r.get("a", 0)}}}\n' for r in lines[:-1]) + '{"k":1}\n')[
            "records"
        ]
        == 1
    )


@pytest.mark.parametrize(
    ("most", "bad", "taken"),
    [("3", 3, True), ("3", 4, False), ("0", 1, False), ("1%", 1, True), ("1%", 2, False), ("", 50, True)],
)
def test_quarantine_has_a_limit_in_records_or_as_a_share(
    lake: Command, most: str, bad: int, taken: bool
) -> None:
    lake.pool("p", bad_records="quarantine")
    file = lake.file("a.ndjson", "".join(f'{{"k":{i}}}\n' for i in range(100 - bad)) + "bad\n" * bad)
    words = ["--bad-records-max", most] if most else []
    if taken:
        assert lake("load", "p", file, *words, "--json").records[0]["rejected"] == bad
        return
    message = lake.fails(INVALID_INPUT, "load", "p", file, *words)
    assert "bad_records.max" in message
    assert lake.history("p") == []


def test_a_dry_run_shows_what_a_load_would_do_and_commits_nothing(lake: Command) -> None:
    lake.pool("p")
    file = lake.file(
        "a.csv", "k;a\n" + "".join(f"{i};2026-01-01\n" for i in range(30)) + ";2026-01-01\n1;2;3\n"
    )
    failed = lake.run("load", "p", file, "--dry-run", "--json")
    assert failed.status == INVALID_INPUT, "as the load would end"
    assert "the load would fail" in failed.err
    (shown,) = failed.records
    assert shown["fields"] == {"k": "bigint", "a": "date"}
    assert (shown["records"], shown["nokey"], shown["rejected"], shown["would_fail"]) == (30, 1, 1, True)
    assert shown["sample"][0] == {"k": 0, "a": "2026-01-01"}
    assert shown["first_rejected"][0]["line"] == 33
    assert shown["notes"] == ["a.csv: delimiter ';', by the header"]
    outcome = lake.run("load", "p", file, "--dry-run")
    assert outcome.status == INVALID_INPUT
    assert lake("load", "p", file, "--dry-run", "--bad-records", "quarantine").status == DONE
    assert (
        "p: dry run: 30 records, 1 without the key, 1 that cannot be read; the load would fail" in outcome.err
    )
    assert "2026-01-01" in outcome.out
    assert lake.history("p") == []
    assert not (Path(lake.uri) / Lake.open(lake.uri).pool("p").config.id / "data").exists()


def test_a_dry_run_hears_of_a_key_that_the_pool_cannot_order(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 1}])
    message = lake.fails(INVALID_INPUT, "load", "p", lake.file("b.ndjson", [{"k": "x"}]), "--dry-run")
    assert "key field 'k': a string here, a number in the pool's other records" in message


def test_folders_give_fields_when_they_are_asked_to(lake: Command) -> None:
    lake.pool("p")
    for folder in ("year=2026/hour=08", "year=2026/hour=10", "year=2025/hour=__HIVE_DEFAULT_PARTITION__"):
        lake.file(f"{folder}/a%20b=x%2Fy/a.csv", f"k\n{len(folder)}\n")
    lake("load", "p", str(lake.folder))
    assert all(set(r) == {"k"} for r in lake.scan("p"))
    lake("replace", "p", str(lake.folder), "--all", "--partitions", "hive")
    assert sorted(lake.scan("p"), key=str) == [
        {"k": 17, "year": 2026, "hour": "08", "a b": "x/y"},
        {"k": 17, "year": 2026, "hour": "10", "a b": "x/y"},
        {"k": 41, "year": 2025, "a b": "x/y"},
    ]


def test_a_folder_may_give_the_key_in_its_declared_type_and_the_files_own_values_stand(lake: Command) -> None:
    lake.pool("p", key="day", types={"day": "date"}, partitions="hive")
    lake.file("day=2026-01-01/a.ndjson", [{"a": 1}, {"day": "2025-12-31"}])
    lake.file("day=2026-01-02/a.csv", "a\n2\n")
    lake("load", "p", str(lake.folder))
    assert [r["day"] for r in lake.scan("p")] == ["2025-12-31", "2026-01-01", "2026-01-02"]
    lake.file("day=yesterday/a.csv", "a\n2\n")
    assert "'yesterday' is not a date" in lake.refuses("p", str(lake.folder / "day=yesterday"))


@pytest.mark.parametrize("own", [1, 0.5, "x", [1], {"a": 1}, None])
def test_which_records_get_the_folders_value_does_not_depend_on_the_others_of_a_block(
    lake: Command, own: object
) -> None:
    for name, pad in (("block", 40), ("blocks", 5_000)):  # a first block has 64 kB
        lines = [{"k": k, "pad": "x" * pad} for k in range(50)] + [{"k": 50, "h": own}, {"k": 51}]
        lake.pool(name, partitions="hive")
        lake("load", name, lake.file("h=7/a.ndjson", lines))
        values = [r.get("h") for r in lake.scan(name)]
        assert values == [7] * 50 + [7 if own is None else own, 7]


def test_files_of_a_folder_are_chosen_by_options_and_settings(lake: Command) -> None:
    lake.pool("p")
    for name in ("a.csv", "b.csv", "c.txt"):
        lake.file(name, f"k\n{ord(name[0])}\n")
    lake("load", "p", str(lake.folder), "--include", "*.csv", "--exclude", "b.*")
    assert lake.scan("p") == [{"k": 97}]
    lake("set", "p", "include=b.csv")
    lake("load", "p", str(lake.folder))
    assert lake.scan("p") == [{"k": 97}, {"k": 98}]


def test_a_rejected_record_is_kept_whole_with_its_load(lake: Command) -> None:
    lake.pool("p", bad_records="quarantine")
    long = '{"k":1,"a":"' + "x" * 1_000_000 + '"'
    binary = b'{"k":2,"a":"\xff\xfe"}'
    done = lake.load_records("p", f"{long}\n".encode() + binary + b"\n")
    text, other = lake.scan("p.$rejected")
    assert text["raw"] == long
    assert "raw_bytes" not in text
    assert (text["transaction"], other["transaction"]) == (done["transaction_id"], done["transaction_id"])
    assert text["time"].startswith("20")
    assert text["time"].endswith("Z")
    sub = Lake.open(lake.uri).pool("p.$rejected").at().to_table()
    assert sub["raw_bytes"].to_pylist() == [None, binary]


def test_rejected_records_are_repaired_loaded_again_and_deleted(lake: Command) -> None:
    """The recipe of docs/files.md."""
    lake.pool("p", bad_records="quarantine")
    done = lake.load_records("p", '{"k":1}\n{"k":2,\n{"k":3}\n')
    rows = lake.scan("p.$rejected", "--columns", "raw,transaction")
    repaired = "".join(row["raw"].rstrip(",") + "}\n" for row in rows)
    lake.load_records("p", repaired, "repaired.ndjson")
    lake("delete", "p.$rejected", "--where", f"transaction = '{done['transaction_id']}'")
    assert lake.scan("p.$rejected") == []
    assert [r["k"] for r in lake.scan("p")] == [1, 2, 3]


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_sub_pools_are_deleted_from_without_touching_the_pool(lake: Command, kind: str) -> None:
    lake("create", "p", "--key", "k", "--kind", kind, "--set", "bad_records=quarantine", "age_off=t:1d")
    for i in range(3):
        lake.load_records("p", f'{{"k":{i}}}\n{{"a":{i}}}\n{{"a":{i + 10}}}\nbad {i}\n', f"{i}.ndjson")
    lake("delete", "p.$nokey", "--where", "a = 1")
    lake("delete", "p.$rejected", "--all", "--reason", "read them")
    lake.load_records("p", '{"k":7}\n{"a":1}\nbad 7\n')  # what comes later is not covered

    def expect() -> None:
        assert [r["a"] for r in lake.scan("p.$nokey")] == [0, 10, 11, 2, 12, 1]
        assert [r["raw"] for r in lake.scan("p.$rejected")] == ["bad 7"]
        assert [r["k"] for r in lake.scan("p")] == [0, 1, 2, 7]
        assert lake.query('select count(*) as n from "p.$nokey"') == [{"n": 6}]

    expect()
    assert [t["sub_pool"] for t in lake.query('select * from "p:tombstones"')] == ["$nokey", "$rejected"]
    lake("checkpoint", "p")
    lake("compact", "p", "--strategy", "full")
    expect()
    lake("tombstones", "p", "--at-once")
    expect()
    assert lake.query('select * from "p:tombstones"') == []
    held = lake.query('select sub_pool, sum(records) as n from "p:objects" group by all order by all')
    assert held == [
        {"sub_pool": "", "n": 4},
        {"sub_pool": "$nokey", "n": 6},
        {"sub_pool": "$rejected", "n": 1},
    ]
    assert "nothing to delete" in lake("delete", "p.$rejected", "--where", "raw = 'bad 1'").err
    lake("delete", "p", "--all")
    assert len(lake.scan("p.$nokey")) == 6
    assert lake.fails(INVALID_INPUT, "delete", "p.$nokey", "--key", "1")


def test_a_file_that_is_named_twice_is_loaded_twice(lake: Command) -> None:
    lake.pool("p")
    file = lake.file("a.csv", "k\n1\n")
    assert Lake.open(lake.uri).pool("p").branch().load([file, file]).records == 2


def test_progress_hears_of_every_byte(lake: Command) -> None:
    lake.pool("p")
    files: dict[str, bytes] = {
        "a.ndjson": b'{"k":1}\n' * 50_000,
        "b.csv": b"k,a\n" + b"1,some text\n" * 50_000,
        "c.csv.gz": b"k,a\n" + b"1,some text\n" * 50_000,
        "d.json": json.dumps([{"k": 1}] * 50_000).encode(),
    }
    paths = [lake.file(name, data) for name, data in files.items()]
    heard: dict[str, float] = {}

    def progress(file: str, size: float) -> None:
        heard[file] = heard.get(file, 0) + size

    Lake.open(lake.uri).pool("p").branch().load(paths, progress=progress)
    for path in paths:
        assert heard[path] >= Path(path).stat().st_size, path


@pytest.mark.parametrize("policy", ["fail", "quarantine"])
def test_invalid_utf8_in_a_parquet_file_is_named_by_its_row(lake: Command, policy: str) -> None:
    lake.pool("p", bad_records=policy)
    text = pa.array([b"good", b"b\xff", b"fine"], pa.binary())
    broken = pa.StringArray.from_buffers(3, text.buffers()[1], text.buffers()[2])
    nested = pa.StructArray.from_arrays([broken], ["s"])
    for name, column in (
        ("plain", broken),
        ("nested", nested),
        ("list", pa.ListArray.from_arrays([0, 1, 2, 3], broken)),
    ):
        file = lake.file(f"{name}.parquet", parquet(pa.table({"k": [1, 2, 3], "a": column})))
        if policy == "fail":
            assert f"{name}.parquet, line 2: field 'a': not UTF-8" in lake.refuses("p", file)
            continue
        assert lake.load("p", file)["rejected"] == 1
        assert [r["k"] for r in lake.scan("p")] == [1, 3]
        assert lake.scan("p.$rejected")[-1]["line"] == 2
        lake("delete", "p", "--all")


def test_a_parquet_file_with_two_columns_of_one_name_is_refused(lake: Command) -> None:
    lake.pool("p", bad_records="quarantine")
    twice = pa.table([[1], [2], [3]], names=["k", "a", "a"])
    assert "field 'a' occurs more than once" in lake.refuses_records("p", parquet(twice), "a.parquet")
    inner = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], fields=[pa.field("x", pa.int64())] * 2)
    nested = parquet(pa.table({"k": [1], "a": inner}))
    assert "in field 'a': field 'x' occurs more than once" in lake.refuses_records("p", nested, "b.parquet")


def parquet_of(**columns: Any) -> bytes:
    return parquet(pa.table(columns))


WIDE = pa.decimal128(38, 2)
LOADS: list[tuple[str, list[str], list[tuple[str, Any]]]] = [
    ("good", [], [("a.ndjson", [{"k": 1, "n": 1}, {"n": 2}])]),
    ("bad", [], [("a.ndjson", '{"k":1}\n{\n')]),
    ("as many as may be bad", ["bad_records=quarantine", "bad_records.max=2"], [("a.ndjson", '{"k":1}\n{\n{\n')]),
    ("more than may be bad", ["bad_records=quarantine", "bad_records.max=1"], [("a.ndjson", '{"k":1}\n{\n{\n')]),
    ("a larger share", ["bad_records=quarantine", "bad_records.max=50%"], [("a.ndjson", '{"k":1}\n{\n{\n')]),
    ("a marker of another kind", ["upsert"], [("a.ndjson", [{"k": 1, "_deleted": "yes"}])]),
    ("a marker of another type", ["upsert"], [("a.parquet", parquet_of(k=[1], _deleted=["yes"]))]),
    ("no sum", ["aggregate"], [("a.ndjson", [{"k": 1, "n": 1}, {"k": 2, "n": "x"}])]),
    ("no sum, in two files", ["aggregate"],
     [("a.ndjson", [{"k": 1, "n": 2**60}]), ("b.ndjson", [{"k": 1, "n": 0.5}])]),
    ("no room for a sum", ["aggregate"], [("a.parquet", parquet_of(k=[1], n=pa.array([Decimal(10**24)], WIDE)))]),
    ("a key of two types", [], [("a.parquet", parquet_of(k=[1])), ("b.parquet", parquet_of(k=["x"]))]),
    ("a key without order", [], [("a.parquet", parquet_of(k=[[1]]))]),
    ("a reserved name", [], [("a.ndjson", [{"k": 1, "_seq": 1}])]),
    ("no key", [], [("a.ndjson", [{"n": 1}])]),
]  # fmt: skip


@pytest.mark.parametrize("quarantine", [False, True], ids=["fail", "quarantine"])
@pytest.mark.parametrize(("words", "files"), [x[1:] for x in LOADS], ids=[x[0] for x in LOADS])
def test_a_dry_run_says_what_the_load_then_does(
    lake: Command, words: list[str], files: list[tuple[str, Any]], quarantine: bool
) -> None:
    kind = words[0] if words and "=" not in words[0] else "append"
    more = ["--kind", kind, *(["--aggregate", "n=sum"] if kind == "aggregate" else [])]
    settings = [*(w for w in words if "=" in w), *(["bad_records=quarantine"] if quarantine else [])]
    lake("create", "p", "--key", "k", *more, *(["--set", *settings] if settings else []))
    paths = [lake.file(name, content) for name, content in files]
    objects = sorted(str(p) for p in Path(lake.uri).rglob("*"))
    dry = lake.run("load", "p", *paths, "--dry-run", "--json")
    assert sorted(str(p) for p in Path(lake.uri).rglob("*")) == objects
    done = lake.run("load", "p", *paths, "--json")
    assert done.status == dry.status
    if not dry.output.strip():
        assert done.err == dry.err
        return
    (shown,) = dry.records
    assert shown["would_fail"] == (done.status != 0)
    if not shown["would_fail"]:
        (loaded,) = done.records
        assert [shown[n] for n in ("records", "nokey", "rejected")] == [
            loaded[n] for n in ("records", "nokey", "rejected")
        ]


UNFIT = [
    ("upsert", "_deleted", "a.ndjson", '{"k":1}\n{"k":2,"_deleted":"yes"}\n{"k":3,"_deleted":true}\n',
     "'yes' is not a boolean"),
    ("upsert", "_deleted", "a.csv", "k,_deleted\n1,\n2,yes\n3,true\n", "'yes' is not a boolean"),
    ("sum", "n", "a.ndjson", '{"k":1,"n":1}\n{"k":2,"n":"abc"}\n{"k":3,"n":2.5}\n', '"abc" is not a number'),
    ("sum", "n", "a.ndjson", '{"k":1,"n":1}\n{"k":2,"n":true}\n{"k":3,"n":2.5}\n', "true is not a number"),
    ("sum", "n", "a.csv", "k,n\n1,1\n2,abc\n3,2.5\n", "'abc' is not a double"),
    ("sum", "n", "a.csv", "k,n\n2,abc\n", "'abc' is not a number"),
    ("max", "n", "a.ndjson", '{"k":1,"n":1}\n{"k":2,"n":"abc"}\n{"k":3,"n":2.5}\n',
     "a string, unlike the records before it"),
    ("min", "n", "a.ndjson", '{"k":1,"n":1}\n{"k":2,"n":[1]}\n{"k":3}\n', "a list has no order"),
    ("sum", "n", "a.parquet", parquet_of(k=[1, 2, 3], n=pa.array([1, 10**24, 2], WIDE)),
     "has more than 26 digits"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "field", "name", "content", "says"), UNFIT, ids=[f"{u[0]} {u[2]} {u[4]}" for u in UNFIT]
)
def test_a_value_that_the_pool_cannot_combine_makes_a_bad_record(
    lake: Command, function: str, field: str, name: str, content: Any, says: str
) -> None:
    kind = ["upsert"] if function == "upsert" else ["aggregate", "--aggregate", f"{field}={function}"]
    lake("create", "p", "--key", "k", "--kind", *kind)
    message = lake.refuses_records("p", content, name)
    assert f"{name}, line " in message
    assert f"field {field!r}: " in message
    assert says in message
    done = lake("load", "p", str(lake.folder / name), "--bad-records", "quarantine", "--json").records[0]
    assert done["rejected"] == 1
    (rejected,) = lake.scan("p.$rejected")
    assert says in rejected["reason"]
    assert 2 not in [record["k"] for record in lake.scan("p")]
    lake("compact", "p", "--strategy", "full")


def test_more_bad_records_than_allowed_are_told_by_the_first_and_the_one_too_many(lake: Command) -> None:
    lake.pool("p", bad_records="quarantine")
    lake("set", "p", "bad_records.max=2")
    message = lake.refuses_records("p", '{"k":1}\nx\n{"k":2}\ny\nz\n{"k":3}\nw\n')
    assert "one more is " in message
    assert "data.ndjson, line 5: " in message
    assert "the first is " in message
    assert "data.ndjson, line 2: " in message


def test_a_path_that_gives_a_field_twice_is_refused(lake: Command) -> None:
    lake.pool("p")
    lake.file("year=2026/month=1/year=2025/a.csv", "k\n1\n")
    message = lake.fails(INVALID_INPUT, "load", "p", str(lake.folder), "--partitions", "hive")
    assert "folder 'year=2025': an earlier folder gives field 'year' too" in message
    lake("load", "p", str(lake.folder))
    assert lake.scan("p") == [{"k": 1}]


@pytest.mark.parametrize("size", [1, 20_000])
def test_integers_that_no_type_of_64_bits_holds_name_the_type_that_does(lake: Command, size: int) -> None:
    lake.pool("p")
    records = [{"k": -1}] * size + [{"k": 2**63}] * size
    message = lake.fails(INVALID_INPUT, "load", "p", lake.file("a.ndjson", records))
    assert "key field 'k': no type of 64 bits holds -1 and 9223372036854775808; declare its type" in message
    assert "type.k='decimal(20,0)'" in message
    lake("set", "p", "type.k=decimal(20,0)")
    lake.load_records("p", records[size - 1 : size + 1])
    assert lake.scan("p") == [{"k": -1}, {"k": 2**63}]


def test_a_dry_run_of_files_without_records_ends_as_the_load_does(lake: Command) -> None:
    lake.pool("p")
    for data in (b"", gzip.compress(b"")):
        file = lake.file("a.ndjson", data)
        assert lake.run("load", "p", file, "--dry-run").status == lake.run("load", "p", file).status == DONE
