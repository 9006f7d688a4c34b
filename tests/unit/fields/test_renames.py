"""A field is renamed or dropped by one small transaction: what readers, writers and past versions see."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lake_core.errors import Conflict, InvalidInput, NotFound
from lake_core.journal import write_state
from lake_core.store.meter import meter_of
from log_lake.agents.retention.expire import expire
from log_lake.derived.create import derive
from log_lake.derived.step import keep
from log_lake.erasure.run import erase
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.repair.rebuild import Wanted, plan_rebuild, rebuild
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables.sql import query
from log_lake.view.routes import graph_of
from log_lake.where.own import OwnFilter, register

ROWS = [{"k": 1, "a": 1, "c": "x"}, {"k": 2, "a": 2, "c": "y"}, {"k": 3, "a": 3, "c": "z"}]


@pytest.fixture
def lake() -> Lake:
    return Lake.create_on(MemoryStore())


@pytest.fixture
def pool(lake: Lake) -> Pool:
    made = lake.create_pool("p", key="k")
    made.branch().append(pa.Table.from_pylist(ROWS))
    return made


def rows(pool: Pool, revision: str = "main", **how: object) -> list[dict[str, object]]:
    found: list[dict[str, object]] = pool.at(revision).to_table(**how).to_pylist()  # type: ignore[arg-type]
    return found


def test_readers_see_the_new_name_and_past_versions_the_old_one(pool: Pool) -> None:
    done = pool.rename_field(old="a", new="b")
    assert (done.version, done.field, done.new) == (2, "a", "b")
    assert pool.at().schema.names == ["k", "b", "c"]
    assert rows(pool)[0] == {"k": 1, "b": 1, "c": "x"}
    assert rows(pool, "1")[0] == {"k": 1, "a": 1, "c": "x"}
    assert rows(pool, where="b > 1", columns=["b"]) == [{"b": 2}, {"b": 3}]
    assert pool.at().get(2).to_pylist() == [{"k": 2, "b": 2, "c": "y"}]
    with pytest.raises(InvalidInput, match="no such field"):
        rows(pool, where="a > 1")
    with pytest.raises(InvalidInput, match="'a' does not exist"):
        rows(pool, columns=["a"])


def test_no_object_is_written(pool: Pool) -> None:
    before = {r.object for r in pool.at().references}
    pool.rename_field(old="a", new="b")
    pool.drop_field("c")
    assert {r.object for r in pool.at().references} == before
    assert [len(t.actions) for _, t in pool.log()] == [1, 1, 2]


def test_a_dropped_field_is_hidden_and_its_name_is_free(pool: Pool) -> None:
    pool.drop_field("a")
    assert rows(pool)[0] == {"k": 1, "c": "x"}
    pool.branch().append(pa.Table.from_pylist([{"k": 4, "a": "new"}]))
    assert rows(pool)[-2:] == [{"k": 3, "c": "z", "a": None}, {"k": 4, "c": None, "a": "new"}]
    pool.rename_field(old="c", new="d")
    pool.rename_field(old="a", new="c")
    assert rows(pool)[-2:] == [{"k": 3, "d": "z", "c": None}, {"k": 4, "d": None, "c": "new"}]


def test_names_can_be_exchanged(pool: Pool) -> None:
    for old, new in (("a", "t"), ("c", "a"), ("t", "c")):
        pool.rename_field(old=old, new=new)
    assert rows(pool)[0] == {"k": 1, "c": 1, "a": "x"}
    pool.branch().append(pa.Table.from_pylist([{"k": 4, "a": "w", "c": 4}]))
    assert rows(pool)[-1] == {"k": 4, "c": 4, "a": "w"}


def test_writes_take_the_new_names(lake: Lake, pool: Pool) -> None:
    pool.rename_field(old="a", new="b")
    pool.branch().append(pa.Table.from_pylist([{"k": 4, "b": 4}]))
    assert [row["b"] for row in rows(pool)] == [1, 2, 3, 4]
    pool.branch().delete(where="b = 1")
    pool.branch().replace_with(pa.Table.from_pylist([{"k": 9, "b": 2}]), where="b = 2")
    assert sorted((row["k"], row["b"]) for row in rows(pool)) == [(3, 3), (4, 4), (9, 2)]
    query(lake, "SELECT 1")
    pool.rename_field(old="b", new="e")
    assert sorted((row["k"], row["e"]) for row in rows(pool)) == [(3, 3), (4, 4), (9, 2)]


def test_sql_sees_the_new_names(lake: Lake, pool: Pool) -> None:
    pool.rename_field(old="a", new="b")
    found = query(lake, "SELECT max(b) AS m, count(b) AS n, min(c) AS c FROM p WHERE b < 3").read_all()
    assert found.to_pylist() == [{"m": 2, "n": 2, "c": "x"}]
    assert query(lake, 'SELECT * FROM "p@1" LIMIT 1').read_all().column_names == ["k", "a", "c"]


def test_an_old_writer_is_right(pool: Pool) -> None:
    branch = pool.branch()
    pending = branch.begin_load()
    with branch.builder(pending) as building:  # type: ignore[arg-type]
        building.add(branch.block(pa.Table.from_pylist([{"k": 4, "a": 4}])))
        written = building.finish()
    pool.rename_field(old="a", new="b")
    branch.commit(
        pending,  # type: ignore[arg-type]
        objects=[w.action for w in written],
        schemas=[w.schema for w in written],
    )
    assert rows(pool)[-1] == {"k": 4, "b": 4, "c": None}


def test_a_load_that_brings_the_new_name_itself_must_begin_again(pool: Pool) -> None:
    branch = pool.branch()
    pending = branch.begin_load()
    with branch.builder(pending) as building:  # type: ignore[arg-type]
        building.add(branch.block(pa.Table.from_pylist([{"k": 4, "b": 4}])))
        written = building.finish()
    pool.rename_field(old="a", new="b")
    with pytest.raises(Conflict, match="field 'b': a field was renamed to this name"):
        branch.commit(
            pending,  # type: ignore[arg-type]
            objects=[w.action for w in written],
            schemas=[w.schema for w in written],
        )
    pool.branch().append(pa.Table.from_pylist([{"k": 4, "b": 4}]))
    assert rows(pool)[-1] == {"k": 4, "b": 4, "c": None}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("k", "x", "field of the key"),
        ("a", "k", "field of the key"),
        ("a", "c", "exists already"),
        ("a", "a", "has this name already"),
        ("a", "_seq", "reserved"),
        ("a", "x\0", "NUL"),
    ],
)
def test_what_is_refused(pool: Pool, old: str, new: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        pool.rename_field(old=old, new=new)
    assert pool.history.load().version == 1


def test_a_field_that_does_not_exist(pool: Pool) -> None:
    with pytest.raises(NotFound, match="field 'x' does not exist"):
        pool.drop_field("x")


@pytest.mark.parametrize(
    ("setting", "text"),
    [("type.a", "bigint"), ("index.i", "bloom(a)"), ("age_off", "a:30d"), ("expire.by", "a")],
)
def test_a_field_that_a_setting_names_stays(lake: Lake, pool: Pool, setting: str, text: str) -> None:
    lake.configure_pool("p", {setting: text})
    with pytest.raises(InvalidInput, match=f"{setting} names it"):
        lake.pool("p").rename_field(old="a", new="b")
    with pytest.raises(InvalidInput, match=f"{setting} names it"):
        lake.pool("p").drop_field("a")
    lake.configure_pool("p", {setting: ""})
    lake.pool("p").rename_field(old="a", new="b")


def test_an_index_and_age_off_may_name_a_renamed_field(lake: Lake, pool: Pool) -> None:
    pool.rename_field(old="a", new="b")
    lake.configure_pool("p", {"index.i": "bloom(b)", "type.b": "bigint"})
    pool = lake.pool("p")
    pool.branch().append(pa.Table.from_pylist([{"k": 5, "b": 50}, {"k": 6, "b": 60}]))
    assert rows(pool, where="b = 55") == []
    assert rows(pool, where="b = 60") == [{"k": 6, "b": 60, "c": None}]
    assert pool.at().plan(where="b = 55").left_out.answers
    lake.configure_pool("p", {"age_off": "b:1d"})
    assert rows(lake.pool("p")) == []


def test_a_function_of_a_filter_gets_a_renamed_field_by_the_name_that_readers_see(
    lake: Lake, pool: Pool
) -> None:
    register("renamed_fields", OwnFilter(1, lambda records: pc.greater(records["b"], 1)))
    pool.rename_field(old="a", new="b")
    pool.rename_field(old="c", new="a")
    lake.configure_pool("p", {"type.b": "bigint", "keep.by": "renamed_fields@1(b)"})
    assert [row["b"] for row in rows(lake.pool("p"))] == [2, 3]
    assert [row["b"] for row in rows(lake.pool("p"), where="a = 'y'", columns=["b"])] == [2]
    with pytest.raises(InvalidInput, match=r"type\.b, keep\.by name it"):
        lake.pool("p").rename_field(old="b", new="d")


def test_a_sketch_of_a_renamed_field_counts(lake: Lake, pool: Pool) -> None:
    lake.configure_pool("p", {"index.s": "sketch(a)"})
    lake.pool("p").branch().append(pa.table({"k": [7], "a": [70]}))
    lake.configure_pool("p", {"index.s": ""})
    lake.pool("p").rename_field(old="a", new="b")
    lake.pool("p").rename_field(old="c", new="a")
    lake.configure_pool("p", {"index.s": "sketch(b)"})
    figures = lake.pool("p").at().field_summary("b")
    assert (figures.records, figures.distinct, figures.low, figures.high) == (4, 4, 1, 70)
    assert (figures.sketches, len(figures.read)) == (1, 1)


def test_a_filter_and_a_roll_up_may_name_a_renamed_field(lake: Lake, pool: Pool) -> None:
    pool.rename_field(old="a", new="b")
    pool.rename_field(old="c", new="a")
    lake.catalog.configure("p", {"keep.where": "b > 1 and a != 'z'"})
    kept = lake.pool("p")
    assert rows(kept) == [{"k": 2, "b": 2, "a": "y"}]
    compact(kept.branch(), kept.at().references, outputs=1)
    assert sum(r.records for r in kept.at().references) == 1
    assert rows(lake.pool("p")) == [{"k": 2, "b": 2, "a": "y"}]
    lake.catalog.configure("p", {"keep.where": "", "roll_up": "t:1h"})
    hour = dt.datetime(2026, 1, 1, 5)
    rolling = lake.pool("p")
    rolling.branch().append(pa.table({"k": [7], "t": [hour + dt.timedelta(minutes=7)]}))
    with pytest.raises(InvalidInput, match="roll_up names it"):
        rolling.rename_field(old="t", new="s")
    lake.catalog.configure("p", {"roll_up": ""})
    lake.pool("p").rename_field(old="t", new="s")
    lake.catalog.configure("p", {"roll_up": "s:1h"})
    lake.pool("p").branch().append(pa.table({"k": [8], "s": [hour + dt.timedelta(minutes=8)]}))
    assert [one["s"] for one in rows(lake.pool("p"), where="k > 6")] == [hour, hour]


def test_loads_into_frozen_fields_go_by_the_new_names(lake: Lake, pool: Pool) -> None:
    pool.rename_field(old="a", new="b")
    lake.configure_pool("p", {"schema": "freeze"})
    frozen = lake.pool("p").branch()
    frozen.append(pa.Table.from_pylist([{"k": 4, "b": 4}]))
    with pytest.raises(InvalidInput, match="field 'a' is not among the fields"):
        frozen.append(pa.Table.from_pylist([{"k": 5, "a": 4}]))


def test_changes_of_fields_are_said_by_the_new_names(pool: Pool) -> None:
    pool.rename_field(old="a", new="b")
    done = pool.branch().append(pa.Table.from_pylist([{"k": 4, "b": 4.5, "d": 1}]))
    assert [line.split()[:2] for line in done.changes] == [["field", "b:"], ["1", "new"]]


def test_a_pool_that_keeps_records_as_they_came_is_refused(lake: Lake) -> None:
    pool = lake.create_pool("z", key="k", settings={"format": "zng"})
    pool.branch().append(pa.Table.from_pylist(ROWS))
    with pytest.raises(InvalidInput, match="keep names of fields in themselves"):
        pool.rename_field(old="a", new="b")


def test_explained_and_counted_records_have_the_new_names(pool: Pool) -> None:
    pool.rename_field(old="a", new="b")
    view = pool.at()
    assert view.explain(view.key_range())[0].record == '{"k":1,"b":1,"c":"x"}'
    assert set(view.summary().fields) == {"k", "b", "c"}
    assert (view.summary().fields["b"].low, view.summary().fields["b"].high) == (1, 3)


def test_the_list_of_fields(pool: Pool) -> None:
    pool.rename_field(old="a", new="b")
    assert [(one.field, one.stored) for one in pool.fields()] == [("k", "k"), ("b", "a"), ("c", "c")]
    assert [one.field for one in pool.fields("1")] == ["k", "a", "c"]


def test_a_derived_pool_names_fields(lake: Lake, pool: Pool) -> None:
    derive(lake, "d", source="p", query="SELECT a, count(*) AS n FROM p GROUP BY a")
    with pytest.raises(InvalidInput, match="derived pool d may name it"):
        pool.rename_field(old="a", new="b")
    pool.rename_field(old="c", new="e")
    with pytest.raises(InvalidInput, match="is derived"):
        lake.pool("d").rename_field(old="n", new="m")


def test_an_upsert_pool(lake: Lake) -> None:
    pool = lake.create_pool("u", key="k", kind="upsert")
    pool.branch().append(pa.Table.from_pylist(ROWS))
    pool.rename_field(old="a", new="b")
    pool.branch().append(pa.Table.from_pylist([{"k": 1, "b": 10, "c": "x"}]))
    pool.branch().delete_keys(pa.table({"k": [2]}))
    pool.branch().delete(where="b = 3")
    assert rows(pool) == [{"k": 1, "b": 10, "c": "x"}]


def test_names_are_in_checkpoints_and_clones_and_other_branches(lake: Lake, pool: Pool) -> None:
    pool.create_branch("dev")
    pool.rename_field(old="a", new="b")
    pool.drop_field("c")
    pool.branch("dev").append(pa.Table.from_pylist([{"k": 7, "b": 7}]))
    assert rows(pool, "dev")[-1] == {"k": 7, "b": 7}
    pool.branch().merge("dev")
    journal = pool.history.journal
    write_state(journal, journal.load(), id=lake.context.ids.new(), now=0.0)
    again = Lake.open_on(lake.store).pool("p")
    assert rows(again)[-1] == {"k": 7, "b": 7}
    assert rows(lake.clone("p", "q"))[-1] == {"k": 7, "b": 7}
    assert rows(lake.clone("p", "old", at="1"))[0] == {"k": 1, "a": 1, "c": "x"}


def test_a_revert_and_an_undo_keep_the_names(pool: Pool) -> None:
    pool.branch().delete(where="a = 1")
    pool.rename_field(old="a", new="b")
    assert [row["b"] for row in rows(pool)] == [2, 3]
    pool.branch().revert("2")
    assert [row["b"] for row in rows(pool)] == [1, 2, 3]


def test_a_rebuild_takes_the_names_that_the_journal_tells(lake: Lake, pool: Pool) -> None:
    pool.rename_field(old="a", new="b")
    pool.branch().append(pa.Table.from_pylist([{"k": 4, "a": 40, "b": 4}]))
    plan = plan_rebuild(lake, "p", Wanted(name="r"))
    rebuild(lake, plan)
    assert rows(lake.pool("r"))[-1] == {"k": 4, "b": 4, "c": None, "a": 40}
    for info in list(lake.store.list(f"{pool.config.id}/journal")):
        lake.store.delete_all([info.name])
    lost = plan_rebuild(lake, "p", Wanted(name="s"))
    assert "readers see stored names, such as 'a~" in "".join(lost.notes)


def test_an_erasure_goes_by_the_names_of_its_beginning(lake: Lake, pool: Pool) -> None:
    pool.rename_field(old="a", new="b")
    receipt = erase(pool, where="b = 2", grace=0.0)
    assert receipt.where == "a = 2"
    assert [row["b"] for row in rows(pool)] == [1, 3]
    assert list(verify(pool, receipt)) == []


def test_expiry_goes_by_a_renamed_field(lake: Lake, pool: Pool) -> None:
    pool.rename_field(old="a", new="b")
    lake.configure_pool("p", {"expire.by": "b", "expire.age": "1d"})
    expired = lake.pool("p")
    expire(expired, branch="main")
    assert rows(expired) == []


def test_content_is_the_same_however_records_are_stored(lake: Lake, pool: Pool) -> None:
    pool.rename_field(old="a", new="b")
    other = lake.create_pool("o", key="k")
    other.branch().append(pa.Table.from_pylist([{"k": r["k"], "b": r["a"], "c": r["c"]} for r in ROWS]))
    assert pool.at().content() == other.at().content()


def test_statements_of_a_transaction_over_pools(lake: Lake, pool: Pool) -> None:
    with lake.transaction() as tx:
        tx.pool("p").append(pa.Table.from_pylist([{"k": 8, "a": 8}]))
        pool.rename_field(old="a", new="b")
    assert rows(pool)[-1] == {"k": 8, "b": 8, "c": None}


def test_the_version_of_an_edit_can_be_read_and_is_no_work_to_revert(pool: Pool) -> None:
    done = pool.rename_field(old="a", new="b")
    assert rows(pool, "2")[0] == {"k": 1, "b": 1, "c": "x"}
    assert rows(pool, done.transaction_id)[0] == {"k": 1, "b": 1, "c": "x"}
    with pytest.raises(InvalidInput):
        pool.branch().revert("2")


def test_an_edit_writes_one_entry_however_many_objects_there_are(lake: Lake) -> None:
    costs = []
    for name, loads in (("few", 1), ("many", 40)):
        pool = lake.create_pool(name, key="k")
        for k in range(loads):
            pool.branch().append(pa.Table.from_pylist([{"k": k, "a": k}]))
        before = meter_of(lake.store).counts()
        pool.rename_field(old="a", new="b")
        spent = meter_of(lake.store).counts() - before
        costs.append((spent.commits, spent.writes, spent.requests < 10))
        assert pool.at().schema.names == ["k", "b"]
    assert costs == [(1, 1, True), (1, 1, True)]


def test_a_derived_pool_follows_a_source_whose_fields_were_renamed(lake: Lake, pool: Pool) -> None:
    pool.branch().delete(where="a = 3")
    pool.rename_field(old="a", new="b")
    derive(lake, "d", source="p", query="SELECT b, count(*) AS n FROM p GROUP BY b")
    pool.branch().append(pa.Table.from_pylist([{"k": 5, "b": 1}, {"k": 6, "b": 3}]))
    pool.branch().delete(where="b = 2")
    pool.drop_field("c")
    assert keep(lake, lake.pool("d")).groups == 3
    assert rows(lake.pool("d")) == [{"b": 1, "n": 2}, {"b": 3, "n": 1}]


def test_the_web_view_says_the_names(lake: Lake, pool: Pool) -> None:
    pool.branch().delete(where="a = 3")
    pool.rename_field(old="a", new="b")
    shown = graph_of(pool, until=None)
    said = [node.says.partition(";")[0] for node in shown.nodes]
    assert said[:2] == ["renamed the field a to b", "deleted records where b = 3"]
