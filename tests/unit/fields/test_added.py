"""A field is added by one small transaction: readers see it, with null, before a record has it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core.errors import Corrupt, InvalidInput, NotFound
from lake_core.journal import write_state
from lake_core.records import AddField
from lake_core.values.types import show_type
from log_lake.derived.create import derive
from log_lake.fields.names import digest_of
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.repair.rebuild import Wanted, plan_rebuild, rebuild
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables.sql import query
from log_lake.view.routes import graph_of

ROWS = [{"k": 1, "a": 1}, {"k": 2, "a": 2}]
TYPES = (
    "bigint",
    "Double",
    "decimal(10,2)",
    "json",
    "string",
    "timestamp",
    "timestamp_ns",
    "uint8",
    "binary",
    "date",
)


@pytest.fixture
def lake() -> Lake:
    return Lake.create_on(MemoryStore())


@pytest.fixture
def pool(lake: Lake) -> Pool:
    made = lake.create_pool("p", key="k")
    made.branch().append(pa.Table.from_pylist(ROWS))
    return made


def test_readers_see_it_and_past_versions_do_not(lake: Lake, pool: Pool) -> None:
    done = pool.add_field("x", "bigint")
    assert (done.version, done.field, done.new) == (2, "x", "x")
    assert pool.at().to_table().to_pylist() == [{**row, "x": None} for row in ROWS]
    assert pool.at("1").schema.names == ["k", "a"]
    asked = "SELECT count(*) AS n, count(x) AS c, max(x) AS m FROM p WHERE x IS NULL"
    assert query(lake, asked).read_all().to_pylist() == [{"n": 2, "c": 0, "m": None}]
    assert pool.at().to_table(where="x = 1").num_rows == 0
    assert pool.at().to_table(where="x is null", columns=["x"]).num_rows == 2


def test_no_object_is_written_then_or_by_a_compaction_for_it(pool: Pool) -> None:
    pool.add_field("x", "bigint")
    assert [len(transaction.actions) for _, transaction in pool.log()] == [1, 2]
    pool.branch().append(pa.Table.from_pylist([{"k": 3, "a": 3}]))
    compact(pool.branch(), pool.at().references)
    (reference,) = pool.at().references
    assert pool.at().state.schema(reference.schema).names == ["k", "a"]
    assert pool.at().schema.names == ["k", "a", "x"]


def test_loads_bring_it_also_if_no_new_field_is_taken(lake: Lake, pool: Pool) -> None:
    lake.configure_pool("p", {"schema": "freeze"})
    pool = lake.pool("p")
    with pytest.raises(InvalidInput, match="x"):
        pool.branch().append(pa.Table.from_pylist([{"k": 3, "x": 3}]))
    pool.add_field("x", "double")
    pool.branch().append(pa.table({"k": [3], "x": [3]}))
    assert pool.at().to_table(where="x > 2").to_pylist() == [{"k": 3, "a": None, "x": 3.0}]
    pool.branch().delete(where="x is null")
    assert pool.at().to_table().num_rows == 1


def test_it_is_renamed_and_dropped_as_any_field(pool: Pool) -> None:
    pool.add_field("x", "bigint")
    pool.rename_field(old="x", new="y")
    pool.branch().append(pa.table({"k": [3], "y": [3]}))
    assert pool.at().to_table().column("y").to_pylist() == [None, None, 3]
    pool.drop_field("y")
    assert pool.at().schema.names == ["k", "a"]
    pool.add_field("y", "string")
    assert (pool.at().schema.field("y").type, pool.at().to_table().column("y").null_count) == (pa.string(), 3)


def test_every_branch_a_clone_and_a_checkpoint_have_it(lake: Lake, pool: Pool) -> None:
    pool.create_branch("dev")
    pool.add_field("x", "bigint")
    journal = pool.history.journal
    write_state(journal, journal.load(), id=lake.context.ids.new(), now=0.0)
    lake.clone("p", "q")
    again = Lake.open_on(lake.store)
    for view in (again.pool("p").at("dev"), again.pool("p").at(), again.pool("q").at()):
        assert view.schema.names == ["k", "a", "x"]


def test_a_load_that_began_before_may_bring_it_itself(pool: Pool) -> None:
    branch = pool.branch()
    pending = branch.begin_load()
    with branch.builder(pending) as building:  # type: ignore[arg-type]
        building.add(branch.block(pa.Table.from_pylist([{"k": 4, "x": 4}])))
        written = building.finish()
    pool.add_field("x", "double")
    objects, schemas = [w.action for w in written], [w.schema for w in written]
    branch.commit(pending, objects=objects, schemas=schemas)  # type: ignore[arg-type]
    assert pool.at().to_table().column("x").to_pylist() == [None, None, 4.0]


@pytest.mark.parametrize("name", TYPES)
def test_it_has_each_type_that_a_setting_declares(pool: Pool, name: str) -> None:
    pool.add_field("x", name)
    assert show_type(pool.at().schema.field("x")) == pool.fields()[-1].type
    assert pool.at().to_table().column("x").null_count == 2


def test_it_is_there_before_the_first_record(lake: Lake) -> None:
    empty = lake.create_pool("empty", key="k")
    empty.add_field("x", "bigint")
    assert empty.at().to_table().num_rows == 0
    empty.branch().append(pa.table({"k": [1]}))
    assert empty.at().to_table().to_pylist() == [{"k": 1, "x": None}]


@pytest.mark.parametrize(
    ("name", "kind", "why"),
    [
        ("a", "bigint", "'a' exists already"),
        ("k", "bigint", "field of the key"),
        ("x", "number", "type 'number' of field 'x' is unknown"),
        ("_seq", "bigint", "reserved"),
        ("x\0", "bigint", "NUL"),
    ],
)
def test_what_is_refused(pool: Pool, name: str, kind: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        pool.add_field(name, kind)
    assert pool.history.load().version == 1


def test_a_name_that_a_setting_or_a_derived_pool_takes_is_refused(lake: Lake, pool: Pool) -> None:
    derive(lake, "d", source="p", query="SELECT * FROM p", key="k")
    with pytest.raises(InvalidInput, match="derived pool d may name it"):
        pool.add_field("x", "bigint")
    lake.drop_pool("d")
    lake.configure_pool("p", {"keep.where": "x = 1", "type.y": "bigint"})
    with pytest.raises(InvalidInput, match=r"keep\.where names it"):
        lake.pool("p").add_field("x", "bigint")
    lake.pool("p").add_field("y", "bigint")


def test_a_rebuilt_pool_has_it(lake: Lake, pool: Pool) -> None:
    pool.add_field("x", "bigint")
    rebuild(lake, plan_rebuild(lake, "p", Wanted(name="again")))
    assert lake.pool("again").at().schema.names == ["k", "a", "x"]


def test_a_stored_type_that_no_program_wrote_is_corrupt(pool: Pool) -> None:
    pool.commit_actions((AddField("x", "number"),), on=1, message="")
    with pytest.raises(Corrupt, match="an added field is damaged: type 'number'"):
        _ = pool.at().schema


def test_logs_and_the_web_view_say_it_and_a_digest_shows_it(pool: Pool) -> None:
    assert digest_of(pool.at().state) == ""
    pool.add_field("x", "bigint")
    assert digest_of(pool.at().state) != ""
    assert graph_of(pool, until=None).nodes[0].says == "added the field x (bigint)"
    with pytest.raises(NotFound):
        pool.rename_field(old="nothing", new="z")
