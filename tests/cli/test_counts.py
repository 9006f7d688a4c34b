"""Headlines count the records that can be read; what objects hold is said as what it is."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.keys.ranges import EVERYTHING
from log_lake import Lake
from log_lake.agents.ingest.parking import park
from log_lake.console.alignment import aligned
from log_lake.loading.source_files import SourceFile
from tests.support.command import Command
from tests.support.stores import ScriptedStore
from tests.support.terminal import on_terminal


def counts(lake: Command, pool: str) -> list[tuple[int, bool, int]]:
    rows = [*lake("ls", "--json").records, lake("show", pool, "--json").records[0]]
    return [(row["records"], row["is_exact"], row["stored"]) for row in rows if row["pool"] == pool]


def test_records_that_a_delete_hides_whole_do_not_count(lake: Command) -> None:
    lake.pool("p", key="k")
    lake.load_records("p", [{"k": k} for k in range(3000)])
    lake("delete", "p", "--all")
    lake.load_records("p", [{"k": k} for k in range(2500)])
    assert counts(lake, "p") == [(2500, True, 5500)] * 2
    header, line = lake("ls").out.splitlines()
    assert header.split()[3:5] == ["records", "stored"]
    assert line.split()[3:5] == ["2,500", "5,500"]
    assert "records      2,500; objects hold 5,500" in lake("show", "p").out


def test_where_the_state_does_not_tell_ls_says_at_most_and_show_looks(lake: Command) -> None:
    lake.pool("p", key="k")
    lake.load_records("p", [{"k": k, "v": k % 2} for k in range(100)])
    lake("delete", "p", "--where", "v = 1")
    assert counts(lake, "p") == [(100, False, 100), (50, True, 100)]
    assert "at most 100" in lake("ls").out


@pytest.mark.parametrize(
    ("second", "expected"), [(range(50, 60), (60, True, 60)), (range(10), (60, False, 60))]
)
def test_an_upsert_pool_counts_keys(lake: Command, second: range, expected: tuple[int, bool, int]) -> None:
    lake("create", "p", "--key", "k", "--kind", "upsert")
    lake.load_records("p", [{"k": k} for k in range(50)], "a.ndjson")
    lake.load_records("p", [{"k": k} for k in second], "b.ndjson")
    in_ls, in_show = counts(lake, "p")
    assert in_ls == expected
    assert in_show == (len({*range(50), *second}), True, 60)


def test_show_lists_the_settings_that_were_chosen_and_all_on_request(lake: Command) -> None:
    lake.pool("p", key="k", bad_records="quarantine")
    shown = lake("show", "p").out
    assert "quarantine" in shown
    assert "vacuum.grace" not in shown
    assert "settings have their defaults (--all shows them)" in shown
    assert "vacuum.grace" in lake("show", "p", "--all").out


def test_the_log_counts_what_each_load_added(lake: Command) -> None:
    lake.pool("p", key="k")
    lake.load_records("p", [{"k": k} for k in range(1200)])
    lake("delete", "p", "--from", "1000")
    header, delete, load = lake("log", "p").out.splitlines()
    assert header.split()[:6] == ["version", "transaction_id", "time", "branch", "added", "removed"]
    assert load.split()[4] == "1,200"
    assert delete.split()[4:6] == ["0", "200"]


def test_the_log_counts_what_each_write_removed(lake: Command) -> None:
    lake.pool("p", key="k")
    lake.load_records("p", [{"k": k, "v": k % 3} for k in range(90)])
    lake("delete", "p", "--where", "v = 1")
    file = lake.file("new.ndjson", [{"k": 3, "v": 9}])
    assert "p: replaced 7 records by 1 record" in lake("replace", "p", file, "--from", "0", "--to", "10").err
    lake("drop", "p", "--from", "80", "--yes")
    lake("erase", "p", "--where", "v = 2", "--yes", "--grace", "0s", "--keep-history")
    removed = [row["removed"] for row in lake("log", "p", "--json").records]
    assert [number for number in removed if number is not None] == [23, 7, 7, 30]
    rows = lake.query('SELECT version, removed, message FROM "p:log" WHERE removed IS NOT NULL')
    assert [row["removed"] for row in rows] == [23, 7, 7, 30]
    assert "hide the records" in rows[0]["message"]


def test_the_log_counts_what_expired(lake: Command) -> None:
    lake.pool("p", key="k", expire_records="50")
    for start in (0, 40, 80):
        lake.load_records("p", [{"k": k} for k in range(start, start + 40)], f"{start}.ndjson")
    lake("expire", "p")
    (row,) = lake.query('SELECT removed FROM "p:log" WHERE removed IS NOT NULL')
    assert row == {"removed": 40}


def test_a_users_metadata_of_that_name_stays(lake: Command) -> None:
    lake.pool("p", key="k")
    lake.load_records("p", [{"k": k} for k in range(3)])
    lake("delete", "p", "--all", "--meta", "removed=by hand")
    (delete, load) = lake("log", "p", "--json").records
    assert (delete["metadata"], delete["removed"]) == ({"removed": "by hand"}, None)
    assert load["removed"] is None


def test_a_number_that_is_not_known_is_a_bound(lake: Command) -> None:
    lake.pool("p", key="k")
    pool = Lake.open(lake.uri).pool("p")
    pool.branch().append(pa.table({"k": range(1000), "v": [k % 2 for k in range(1000)]}))
    whole = pool.branch().delete(key_range=pool.at().key_range(low=2000))
    assert whole.version is None
    part = pool.branch().delete(where="v = 1")
    assert (part.records, part.is_exact) == (
        1000,
        False,
    )  # the state does not tell, and a program did not ask
    (row,) = [row for row in lake("log", "p", "--json").records if row["version"] == part.version]
    assert row["removed"] is None
    asked = pool.branch().delete(key_range=pool.at().key_range(low=900), count=True)
    assert (asked.records, asked.is_exact) == (50, True)


@pytest.mark.parametrize("replaces", [False, True])
def test_a_number_is_not_known_if_another_write_came_between(replaces: bool) -> None:
    store = ScriptedStore()
    pool = Lake.create_on(store).create_pool("p", key="k")
    records = pa.table({"k": [1, 2, 3]})
    pool.branch().append(records)
    other = Lake.open_on(store.behind).pool("p").branch()
    entry = naming.entry(naming.pool_journal(pool.config.id), 2)
    store.on("create", entry, before=lambda: other.append(records))
    if replaces:
        loaded = pool.branch().replace_with(records, key_range=EVERYTHING)
        counted, removed = (loaded.version, loaded.removed), loaded.removed_is_exact
    else:
        deleted = pool.branch().delete(count=True)
        counted, removed = (deleted.version, deleted.records), deleted.is_exact
    # a delete that believed its memory begins again, and counts what came between
    assert (counted, removed) == ((3, None if replaces else 6), True)
    assert pool.at().to_table().num_rows == (3 if replaces else 0)


def test_a_narrow_terminal_shows_the_message_under_the_line(lake: Command) -> None:
    lake.pool("p", key="k")
    message = "the flights of January, once more, since the first delivery had been cut off in its middle"
    lake.load_records("p", [{"k": k} for k in range(3)])
    lake("delete", "p", "--key", "1", "--reason", message)
    id = lake("log", "p", "--json").records[0]["transaction_id"]
    shown = on_terminal("log", "p", "--lake", lake.uri, columns=80)
    header, delete, *under = shown.lines[:4]
    assert header.split() == ["version", "transaction_id", "time", "added", "removed"]
    assert delete.split()[1] == id
    assert delete.split()[-2:] == ["0", "1"]
    assert " ".join(line.strip() for line in under) == message
    assert max(map(len, shown.lines[:5])) <= 80
    assert message in on_terminal("log", "p", "--lake", lake.uri, columns=240).lines[1]
    assert message in lake("log", "p").out, "a pipe gets all of it"


def test_a_narrow_terminal_shows_why_a_file_is_parked(lake: Command) -> None:
    lake.pool("p", key="k")
    pool = Lake.open(lake.uri).pool("p")
    name = f"/data/{'landing/' * 12}part-0001.ndjson"
    why = "line 1: malformed JSON in field 'ts': Expecting ',' delimiter (column 8)"
    park(pool, SourceFile(name, 7, "", 0.0), why=why, now=1_700_000_000.0)
    shown = on_terminal("parked", "p", "--lake", lake.uri, columns=80)
    assert shown.lines[1].split()[0] == name
    assert shown.lines[2].strip() == why


def test_what_identifies_is_never_cut() -> None:
    names = ["version", "transaction_id", "time", "message"]
    row = ["1", "3MdXO3aNiPQiGA3OYOE5V8iGo27", "2026-11-26T08:23:02.691794Z", "a long message of a load"]
    lines, left_out = aligned(names, [row], right=[False] * 4, total=80, whole=[1, 2])
    assert row[1] in lines[1]
    assert row[2] in lines[1]
    assert max(map(len, lines)) <= 80
    assert left_out == []


def test_a_delete_says_how_many_records_it_met(lake: Command) -> None:
    lake.pool("p", key="k")
    lake.load_records("p", [{"k": k, "v": k % 3} for k in range(90)])
    assert "p: deleted 30 records; " in lake("delete", "p", "--where", "v = 1").err
    (done,) = lake("delete", "p", "--from", "0", "--to", "10", "--token", "t", "--json").records
    assert done["records"] == 7  # three were deleted before
    (again,) = lake("delete", "p", "--from", "0", "--to", "10", "--token", "t", "--json").records
    assert (again["repeated"], again["records"]) == (True, None)
    assert "removed 53 records of the range" in lake("drop", "p", "--from", "10", "--yes").err


def test_an_erasure_says_how_many_records_it_meets_and_prints_a_page(lake: Command) -> None:
    lake.pool("p", key="k")
    lake.load_records("p", [{"k": k, "v": k % 2} for k in range(10)])
    assert "readers of main see 5 such records" in lake("erase", "p", "--where", "v = 1", "--dry-run").err
    (dry,) = lake("erase", "p", "--where", "v = 1", "--dry-run", "--json").records
    assert dry["records"] == 5
    page = lake("erase", "p", "--where", "v = 1", "--yes", "--grace", "0s").out
    facts = dict(line.split(maxsplit=1) for line in page.splitlines() if not line.startswith(" "))
    assert (facts["pool"], facts["status"]) == ("p", "done")
    assert facts["deleted"].startswith("1 object, ")
    assert facts["records"] == "readers of main saw 5 such records"
    assert "v = 1" not in page  # the condition may be personal data


def test_tables_about_a_pool_count_what_readers_see(lake: Command) -> None:
    lake.pool("p", key="k")
    lake.load_records("p", [{"k": k} for k in range(3)])
    lake("delete", "p", "--all")
    lake.load_records("p", [{"k": 9}], "b.ndjson")
    (row,) = lake.query('SELECT records, is_exact, stored FROM "p:branches"')
    assert row == {"records": 1, "is_exact": True, "stored": 4}
    assert [row["added"] for row in lake.query('SELECT added FROM "p:log"')] == [1, 0, 3]
    assert lake("branch", "p").out.splitlines()[0].split()[:4] == ["name", "tip", "references", "records"]
