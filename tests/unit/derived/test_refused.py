"""A query that cannot be kept is refused with the clause and what to write instead."""

from __future__ import annotations

import pytest

from lake_core.errors import AlreadyExists, InvalidInput, NotFound
from tests.unit.derived.conftest import BY_PREFIX, DerivedWorld

REFUSED = {
    "SELECT b, n FROM (SELECT k AS b, v AS n FROM p)": "FROM names something that is no pool",
    "SELECT a.k FROM p AS a JOIN p AS b USING (k)": "JOIN",
    "SELECT k FROM p UNION ALL SELECT k FROM p": "UNION",
    "WITH x AS (SELECT 1) SELECT k FROM p": "WITH",
    "SELECT k FROM p ORDER BY k": "ORDER BY",
    "SELECT k FROM p LIMIT 3": "LIMIT",
    "SELECT DISTINCT k, who FROM p": "DISTINCT",
    "SELECT k FROM p USING SAMPLE 10%": "SAMPLE",
    "SELECT k, row_number() OVER () AS n FROM p": "window function",
    "SELECT k FROM p QUALIFY row_number() OVER () = 1": "QUALIFY",
    "SELECT k FROM p WHERE v > (SELECT avg(v) FROM p)": "subquery",
    "SELECT k, random() AS r FROM p": "random()",
    "SELECT k, now() AS t FROM p": "now()",
    "SELECT k, current_timestamp AS t FROM p": "current_timestamp",
    "SELECT k, age(TIMESTAMP '2026-01-01') AS t FROM p": "age()",
    "SELECT k // 10 AS b, string_agg(who) AS w FROM p GROUP BY b": "string_agg()",
    "SELECT k // 10 AS b, first(who) AS w FROM p GROUP BY b": "first()",
    "SELECT count(*) AS n FROM p": "without GROUP BY",
    "SELECT 1 AS one, count(*) AS n FROM p GROUP BY one": "no field is grouped by",
    "SELECT count(*) AS n FROM p GROUP BY k": "not among the columns",
    "SELECT k, who, count(*) AS n FROM p GROUP BY ROLLUP (k, who)": "ROLLUP",
    "SELECT who, v FROM p": "'k' is missing",
    "SELECT * EXCLUDE (k) FROM p": "'k' is missing",
    "SELECT * REPLACE (v + 1 AS v) FROM p": "REPLACE",
    "SELECT k, COLUMNS('v') FROM p": "COLUMNS",
    "SELECT k, v AS k FROM p": "two columns are called 'k'",
    "SELECT k FROM other": "other",
    "SELECT nothing FROM p": "nothing",
    "DELETE FROM p": "SELECT",
    "SELECT k FRM p": "syntax error",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_cannot_be_kept_is_refused_with_the_clause(world: DerivedWorld, sql: str) -> None:
    with pytest.raises(InvalidInput, match=r"derive|query") as refused:
        world.derive(sql=sql)
    assert REFUSED[sql] in str(refused.value)
    assert [one.name for one in world.lake.pools()] == ["p"]


def test_a_name_that_is_taken_and_a_source_that_is_not_there_are_refused(world: DerivedWorld) -> None:
    with pytest.raises(AlreadyExists, match="'p' exists already"):
        world.derive("p")
    with pytest.raises(NotFound, match="nowhere"):
        world.derive(source="nowhere")
    with pytest.raises(InvalidInput, match="the key 'x' is no column of the query"):
        world.derive(key="x")
    world.lake.create_pool("empty", key="k")
    with pytest.raises(InvalidInput, match="'empty' has no record yet"):
        world.derive(sql="SELECT k FROM empty", source="empty")
    world.lake.catalog.configure("p", {"age_off": "k:30d"})
    with pytest.raises(InvalidInput, match="'p' has age_off"):
        world.derive()
    world.lake.catalog.configure("p", {"age_off": "", "keep.where": "k > 1"})
    with pytest.raises(InvalidInput, match=r"'p' has keep\.where"):
        world.derive()


def test_a_first_key_that_is_null_is_refused_with_the_way_around_it(world: DerivedWorld) -> None:
    world.load(3, who=None)
    by_name = "SELECT who, count(*) AS n FROM p GROUP BY who"
    with pytest.raises(InvalidInput, match="'who' is NULL"):
        world.derive(sql=by_name)
    world.derive(sql=by_name, key="n")
    world.load(4, 5, who=None)
    assert world.keep().groups == 1
    world.check(sql=by_name)


def test_only_its_query_changes_a_derived_pool(world: DerivedWorld) -> None:
    world.derive()
    pool = world.lake.pool("d")
    table = pool.at().to_table()
    for change in (
        lambda: pool.branch().append(table),
        lambda: pool.branch().replace_with(table),
        lambda: pool.branch().delete(),
        lambda: pool.branch().delete(where="n > 1"),
        lambda: pool.branch().delete_keys(table),
        lambda: pool.branch().replace_keys(table),
        lambda: pool.branch().revert("1"),
    ):
        with pytest.raises(InvalidInput, match="'d' is derived from another one"):
            change()
    pool.create_branch("own")
    pool.branch("own").append(table)
    with pytest.raises(InvalidInput, match="'d' is derived from another one"):
        pool.branch().merge("own")
    world.check()
    world.lake.catalog.configure("d", {"derive.from": ""})
    assert world.lake.pool("d").branch().append(table).version


def test_the_settings_are_of_one_pool(world: DerivedWorld) -> None:
    world.derive()
    clone = world.lake.clone("d", "copy")
    assert not clone.settings["derive.from"]
    assert clone.branch().append(clone.at().to_table()).version
    assert world.lake.pool("d").settings["derive.query"] == BY_PREFIX
