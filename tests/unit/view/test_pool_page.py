"""The page of a pool: counts that readers see, fields, settings, health, and the first records."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Denied, LakeError, NotFound, Unavailable
from lake_core.ids import IdSource
from log_lake.agents.ingest.parking import park
from log_lake.agents.jobs import recorded
from log_lake.lake import Lake
from log_lake.lake.counting import records_matching, records_seen
from log_lake.loading.source_files import SourceFile
from log_lake.stores.memory import MemoryStore
from log_lake.view.matching import matching
from log_lake.view.pool_page import PoolPage, pool_page
from log_lake.view.sample import MAX_CELL, sample, sample_of
from tests.support.clocks import Clock
from tests.support.stores import ScriptedStore, raising, unavailable


@pytest.fixture
def lake() -> Lake:
    lake = Lake.create_on(MemoryStore(), author="ada")
    pool = lake.create_pool("logs", key="k", settings={"compact.depth": "3"})
    pool.branch().append(pa.table({"k": list(range(100)), "user": ["ada", "bob"] * 50}))
    return lake


def page(lake: Lake, name: str = "logs") -> PoolPage:
    return pool_page(lake, name)


def test_the_headline_counts_what_readers_see(lake: Lake) -> None:
    assert (page(lake).records, page(lake).is_exact, page(lake).stored) == (100, True, 100)
    lake.pool("logs").branch().delete(where="user = 'bob'")
    shown = page(lake)
    assert (shown.records, shown.is_exact, shown.stored) == (50, True, 100), (
        "a small pool is counted by a look"
    )
    assert records_seen(lake.pool("logs").at(), looked_at=99) == type(records_seen(lake.pool("logs").at()))(
        100, False, 100
    ), "a large one has a bound"


def test_fields_have_types_and_what_the_state_knows_of_their_values(lake: Lake) -> None:
    k, user = page(lake).fields
    assert (k.name, k.type, k.nulls, k.low, k.high) == ("k", "bigint", 0, "0", "99")
    assert (user.type, user.low, user.high) == ("string", "ada", "bob")
    lake.pool("logs").branch().delete(where="user = 'bob'")
    shown = page(lake)
    assert [one.nulls for one in shown.fields] == [None, None]
    assert "may still hide records" in shown.bounds


def test_a_split_pool_has_its_ranges(lake: Lake) -> None:
    assert (page(lake).ranges, page(lake).ranges_in_all) == ([], 1)
    lake.pool("logs").split(at=[25])
    low, high = page(lake).ranges
    assert (low.low, low.high, low.records, low.objects, low.straddling, low.depth) == ("", "25", 50, 1, 1, 1)
    assert (high.low, high.high, page(lake).ranges_in_all) == ("25", "", 2)
    assert low.size + high.size == page(lake).size


def test_settings_that_differ_are_marked_and_secrets_are_not_shown(lake: Lake) -> None:
    lake.configure_pool("logs", {"ingest.source": "s3://ada:secret@bucket/in"})
    settings = {one.name: one for one in page(lake).settings}
    assert {name for name, one in settings.items() if one.chosen} == {"compact.depth", "ingest.source"}
    assert "secret" not in settings["ingest.source"].text
    assert settings["compact.depth"].text == "3"


def test_a_pool_that_is_well_has_no_lines(lake: Lake) -> None:
    assert page(lake).health.lines == []
    assert page(lake).health.parked == []


def test_health_names_what_is_due_what_failed_and_what_is_parked(lake: Lake) -> None:
    pool = lake.pool("logs")
    for _ in range(4):
        pool.branch().append(pa.table({"k": [1]}))
    with pytest.raises(Unavailable), recorded(lake, agent="ingest", pool_name="logs"):
        raise Unavailable("the store does not answer")
    park(pool, SourceFile("in/bad.json", 7, "", 0.0), why="no JSON", now=1_700_000_000.0)
    lake.configure_pool("logs", {"upkeep": "paused"})
    health = page(lake).health
    assert [(line.level, line.part) for line in health.lines] == [
        ("bad", "ingest"),
        ("bad", "ingest"),
        ("late", "compact"),
        ("note", "upkeep"),
    ]
    says = "\n".join(line.says for line in health.lines)
    assert "the newest job failed: Unavailable: the store does not answer" in says
    assert "1 file cannot be loaded, and is skipped" in says
    assert [(one.file, one.why) for one in health.parked] == [("in/bad.json", "no JSON")]


def test_a_part_that_cannot_be_read_is_a_line_and_hides_no_other() -> None:
    clock = Clock()
    store = ScriptedStore()
    lake = Lake.create_on(store, ids=IdSource(clock=clock))
    lake.create_pool("logs", key="k").branch().append(pa.table({"k": [1]}))
    store.on("list", naming.parked_folder(lake.pool("logs").config.id), instead=unavailable)
    shown = page(lake)
    assert shown.records == 1
    assert [(line.level, line.part) for line in shown.health.lines] == [("bad", "ingest")]


def test_what_the_view_may_not_read_is_a_note() -> None:
    store = ScriptedStore()
    lake = Lake.create_on(store)
    lake.create_pool("logs", key="k").branch().append(pa.table({"k": [1]}))
    folder = naming.erasures(lake.pool("logs").config.id)
    store.on("list", folder, instead=raising(Denied("the right to read is missing")))
    (line,) = page(lake).health.lines
    assert (line.level, line.part) == ("note", "erasure")
    assert line.says.startswith("not known: the right to read is missing")


def test_the_first_records_come_in_the_order_of_the_key(lake: Lake) -> None:
    lake.pool("logs").branch().append(pa.table({"k": [-1], "user": ["x" * 1_000], "note": [None]}))
    shown = sample_of(lake, "logs")
    assert shown.fields == ["k", "user", "note"]
    assert shown.numbers == [True, False, False]
    assert shown.rows[0][0] == "-1"
    assert len(shown.rows[0][1] or "") == MAX_CELL
    assert shown.rows[1] == ["0", "ada", None]
    assert (len(shown.rows), shown.more) == (20, True)
    few = sample(lake.pool("logs").at(), max_records=200, max_fields=2)
    assert (len(few.rows), few.more, few.left_out) == (101, False, 1)


def test_a_text_is_shown_as_it_is_and_other_values_as_json(lake: Lake) -> None:
    pool = lake.create_pool("texts", key="k")
    values = {"text": ['a "quoted" \\ text'], "bell": ["\a"], "list": [["x"]], "map": [{"a": 1}]}
    pool.branch().append(pa.table({"k": [1], **values}))
    assert sample_of(lake, "texts").rows == [["1", 'a "quoted" \\ text', "\\u0007", '["x"]', '{"a":1}']]


def test_fields_of_the_key_come_first(lake: Lake) -> None:
    pool = lake.create_pool("flights", key="when,carrier")
    pool.branch().append(pa.table({"year": [2013], "carrier": ["AA"], "when": [1], "to": ["JFK"]}))
    assert sample_of(lake, "flights").fields == ["when", "carrier", "year", "to"]


def test_records_of_an_old_version_and_of_a_sub_pool_are_shown(lake: Lake) -> None:
    lake.pool("logs").branch().append(pa.table({"other": ["no key"]}))
    assert sample_of(lake, "logs.$nokey").rows == [["no key"]]
    assert sample_of(lake, "logs", version=1).fields == ["k", "user"]
    shown = page(lake)
    assert [(one.pool, one.records) for one in shown.sub_pools] == [("logs.$nokey", 1)]
    with pytest.raises(NotFound, match="version 9 does not exist"):
        sample_of(lake, "logs", version=9)


def test_an_empty_pool_is_a_page_too(lake: Lake) -> None:
    lake.create_pool("empty", key="k")
    shown = page(lake, "empty")
    assert (shown.records, shown.objects, shown.low, shown.fields) == (0, 0, "", [])
    assert sample_of(lake, "empty").rows == []


def test_the_count_of_an_erasure_is_of_the_records_that_match(lake: Lake) -> None:
    found = matching(lake, "logs", where="user = 'bob'", low="10", high="20")
    assert (found.records, found.is_exact, found.objects) == (5, True, 1)
    assert found.says.startswith("5 records match now; an erasure searches 1 object of ")
    assert matching(lake, "logs", key="7", low="").says.startswith("1 record matches now")
    bounded = matching(lake, "logs", where="user = 'bob'", max_read=99)
    assert (bounded.records, bounded.is_exact) == (100, False)
    assert bounded.says.startswith("at most 100 records match now")
    assert records_matching(lake.pool("logs").at(), where="user = 'carol'").records == 0


def test_records_whose_key_is_a_path_or_is_missing_are_counted_too(lake: Lake) -> None:
    pool = lake.create_pool("nested", key="user.id")
    pool.branch().append(pa.table({"user": [{"id": 1}, {"id": 2}], "n": [1, 2]}))
    pool.branch().delete(where="n = 1")
    assert (page(lake, "nested").records, page(lake, "nested").is_exact) == (1, True)
    assert matching(lake, "nested", where="n > 0").records == 1
    lake.pool("logs").branch().append(pa.table({"other": ["no key", "none"]}))
    assert matching(lake, "logs.$nokey", where="other = 'none'").records == 1


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "name the records"),
        ({"where": ""}, "name the records"),
        ({"key": "1", "low": "2"}, "either the parameter 'key'"),
        ({"where": "nope = 1"}, "nope"),
        ({"low": "9", "high": "1"}, "range"),
    ],
)
def test_what_names_no_records_is_refused(lake: Lake, asked: dict[str, str], says: str) -> None:
    with pytest.raises(LakeError, match=says):
        matching(lake, "logs", **asked)
