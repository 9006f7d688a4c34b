"""Fields whose names differ only in case: a statement changes the field that it names, or says which to name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput, NotFound
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.sql_writes import execute
from log_lake.stores.memory import MemoryStore

FIRST = {"k": 1, "app": "web", "App": "db", "App_1": "one"}
SECOND = {"k": 2, "app": "db", "App": "web", "App_1": "two"}
SOURCE = "(SELECT 1 AS k, 'lo' AS app, 'UP' AS \"App\") s"


@pytest.fixture
def lake() -> Lake:
    return Lake.create_on(MemoryStore())


def pool_of(lake: Lake, kind: str) -> Pool:
    pool = lake.create_pool("p", key="k", kind=kind)
    pool.branch().append(pa.Table.from_pylist([FIRST, SECOND]))
    return pool


@pytest.mark.parametrize("kind", ["append", "upsert"])
@pytest.mark.parametrize(
    ("sql", "changed"),
    [
        ("UPDATE p SET App = 'X' WHERE k = 1", {"App": "X"}),
        ("UPDATE p SET app = 'X' WHERE k = 1", {"app": "X"}),
        ("UPDATE p SET \"App\" = 'X' WHERE \"App\" = 'db'", {"App": "X"}),
        ('UPDATE p SET app = "=^app", App = "=app" WHERE k = 1', {"app": "db", "App": "web"}),
        ('UPDATE p SET "App_1" = "=^app" WHERE k = 1', {"App_1": "db"}),
        (
            "MERGE INTO p USING (SELECT 'db' v) s ON p.\"=^app\" = s.v WHEN MATCHED THEN UPDATE SET App = 'X'",
            {"App": "X"},
        ),
        (
            "MERGE INTO p USING (SELECT 1 k, 'X' \"App_1\") s ON p.k = s.k WHEN MATCHED THEN UPDATE SET *",
            {"App_1": "X"},
        ),
    ],
)
def test_the_named_field_changes(lake: Lake, kind: str, sql: str, changed: dict[str, str]) -> None:
    pool = pool_of(lake, kind)
    assert execute(lake, sql).records == 1
    assert pool.at().to_table().to_pylist() == [FIRST | changed, SECOND]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ('UPDATE p SET app = "App"', 'SQL takes the fields "app" and "App" for one; write "=app" or "=^app"'),
        ("UPDATE p SET App_1 = app", 'SQL takes the fields "app" and "App" for one; write "=app" or "=^app"'),
        ("UPDATE p SET \"APP\" = 'X'", "SET APP: no such field"),
        ("UPDATE p SET app = 'X' WHERE APP = 'web'", "no such field"),
        ("DELETE FROM p WHERE APP = 'web'", "no such field"),
        (
            "MERGE INTO p USING (SELECT 'db' v) s ON p.app = s.v WHEN MATCHED THEN DELETE",
            'SQL takes the fields "app" and "App" for one; write "=app" or "=^app"',
        ),
        (
            f'MERGE INTO p USING {SOURCE} ON p.k = s.k WHEN MATCHED THEN UPDATE SET app = p."App"',
            'has the columns "app" and "App", which SQL takes for one; rename one (AS)',
        ),
        (
            "MERGE INTO p USING (SELECT 1 AS k) s ON p.k = s.k WHEN MATCHED THEN UPDATE SET app = p.App",
            'SQL takes the fields "app" and "App" for one; write "=app" or "=^app"',
        ),
        (f"MERGE INTO p USING {SOURCE} ON p.k = s.k WHEN MATCHED THEN UPDATE SET *", "SQL takes for one"),
        (f"MERGE INTO p USING {SOURCE} ON p.k = s.k + 5 WHEN NOT MATCHED THEN INSERT *", "SQL takes for one"),
        (
            "MERGE INTO p USING (VALUES (1, 'lo', 'UP')) s (k, app, App) ON p.k = s.k "
            "WHEN MATCHED THEN UPDATE SET *",
            "SQL takes for one",
        ),
        (f"INSERT INTO p BY NAME SELECT * FROM {SOURCE}", "SQL takes for one"),
        (f"INSERT INTO p (k, app, App_1) SELECT * FROM {SOURCE}", "SQL takes for one"),
        (
            "INSERT INTO p BY NAME WITH s AS (SELECT 5 AS k, 'lo' AS app, 'UP' AS App) SELECT * FROM s",
            "SQL takes for one",
        ),
        (f"CREATE TABLE q AS SELECT * FROM {SOURCE} ORDER BY k", "SQL takes for one"),
    ],
)
def test_a_statement_that_may_mean_another_field_is_refused(lake: Lake, sql: str, says: str) -> None:
    pool = pool_of(lake, "append")
    with pytest.raises(InvalidInput) as refused:
        execute(lake, sql)
    assert says in str(refused.value)
    assert pool.at().to_table().to_pylist() == [FIRST, SECOND]
    with pytest.raises(NotFound):
        lake.pool("q")


def test_records_of_a_pool_are_inserted_into_fields_of_their_names(lake: Lake) -> None:
    pool = pool_of(lake, "append")
    other = lake.create_pool("r", key="k")
    other.branch().append(pa.table({"k": [3], "app": ["a"], "App": ["b"]}))
    execute(lake, "INSERT INTO p BY NAME SELECT * FROM r")
    execute(lake, "MERGE INTO p USING r ON p.k = r.k + 1 WHEN NOT MATCHED THEN INSERT *")
    third = {"k": 3, "app": "a", "App": "b", "App_1": None}
    assert pool.at().to_table().to_pylist() == [FIRST, SECOND, third, third]
