"""keep.by: a function of an installed package says which records are kept, and without it nothing is read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lake_core.errors import InvalidInput
from log_lake.doctor.fights import unusable
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.where.own import OwnFilter, find_filter, names, register

TYPES = {"type.n": "bigint", "type.s": "string"}


def above_ten(records: pa.Table) -> pa.ChunkedArray:
    return pc.greater(records["n"], 10)


@pytest.fixture
def lake() -> Lake:
    return Lake.create_on(MemoryStore())


@pytest.fixture
def name() -> str:
    """A function that keeps records with n above 10, version 3, under a name of its own."""
    name = f"f{uuid4().hex}"
    register(name, OwnFilter(3, above_ten))
    return name


def pool_in(lake: Lake, name: str, kind: str = "append", key: str = "k", call: str = "@3(n)") -> Pool:
    return lake.create_pool("p", key=key, kind=kind, settings={"keep.by": name + call, **TYPES})


def seen(pool: Pool) -> list[Any]:
    return [record["k"] for record in pool.at().to_table().to_pylist()]


@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
def test_what_the_function_does_not_keep_is_not_seen_and_compaction_drops_it(
    lake: Lake, name: str, kind: str
) -> None:
    pool = pool_in(lake, name, kind, key="n,k")
    pool.branch().append(pa.table({"n": [5, 15], "k": [1, 2]}))
    pool.branch().append(pa.table({"n": pa.array([7.0, 25.0]), "k": [3, 4]}))
    assert seen(pool) == [2, 4]
    by_kind = (
        "keep.by may hide records" if kind == "append" else f"records of equal keys are combined ({kind})"
    )
    assert pool.at().summary().why == by_kind
    assert pool.at().summary(read=True).records == pool.at().content().records == 2
    compact(pool.branch(), pool.at().references)
    assert (seen(pool), pool.at().records) == ([2, 4], 2)


def test_the_function_gets_the_declared_types_whatever_the_objects_have(lake: Lake, name: str) -> None:
    given = []

    def noting(records: pa.Table) -> pa.ChunkedArray:
        given.append(records.schema)
        return pc.fill_null(above_ten(records), True)

    register(f"{name}b", OwnFilter(1, noting))
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1, 2], "n": [5.5, 20.0]}))
    lake.pool("p").branch().append(pa.table({"k": [3, 4, 5], "n": ["x", None, "30"], "s": ["a", "b", "c"]}))
    lake.pool("p").branch().append(pa.table({"k": [6, 7], "n": [1, 40]}))
    lake.catalog.configure("p", {"keep.by": f"{name}b@1(n,s)", **TYPES})
    assert seen(lake.pool("p")) == [1, 2, 3, 4, 5, 7], "what is no bigint is null"
    assert {tuple(zip(one.names, one.types, strict=True)) for one in given} == {
        (("n", pa.int64()), ("s", pa.string()))
    }


def test_a_function_that_is_missing_or_has_another_version_stops_each_read_in_one_line(
    lake: Lake, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = pool_in(lake, name)
    pool.branch().append(pa.table({"k": [1, 2], "n": [5, 20]}))
    for found, why in (
        ({}, f"keep.by={name}@3: no installed package has the filter"),
        (
            {name: OwnFilter(4, above_ten)},
            f"keep.by={name}@3: the installed filter '{name}' has version 4; install",
        ),
    ):
        with monkeypatch.context() as patch:
            patch.setattr("log_lake.where.own._registered", found)
            for read in (seen, lambda p: p.at().summary(read=True), lambda p: p.at().content()):
                with pytest.raises(InvalidInput, match=why):
                    read(pool)
            with pytest.raises(InvalidInput, match=why):
                compact(pool.branch(), pool.at().references)
            assert [why in fault for fault in unusable(pool.config)] == [True]
            assert pool.at().summary().at_most == 2, "the state needs no function"
            with pytest.raises(InvalidInput, match=why):
                lake.create_pool("q", key="k", settings={"keep.by": f"{name}@3(n)", **TYPES})
    assert seen(pool) == [2]


def test_an_entry_point_of_an_installed_package_is_found(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = f"acme_{uuid4().hex}"
    (tmp_path / f"{package}.py").write_text(
        "import pyarrow.compute as pc\n"
        "from log_lake.where.own import OwnFilter\n"
        "CLEAN = OwnFilter(version=2, keeps=lambda records: pc.not_equal(records['s'], 'debug'))\n"
        "WRONG = 3\n"
    )
    info = tmp_path / f"{package}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
    points = {"clean": "CLEAN", "wrong": "WRONG", "absent": "ABSENT"}
    lines = [f"{package}.{name} = {package}:{where}\n" for name, where in points.items()]
    (info / "entry_points.txt").write_text("[log_lake.filters]\n" + "".join(lines))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert f"{package}.clean" in names()
    pool = pool_in(lake, f"{package}.clean", call="@2(s)")
    pool.branch().append(pa.table({"k": [1, 2, 3], "s": ["debug", "info", None]}))
    assert seen(pool) == [2]
    with pytest.raises(InvalidInput, match="is no OwnFilter"):
        find_filter(f"{package}.wrong", 1)
    with pytest.raises(InvalidInput, match="cannot be imported"):
        find_filter(f"{package}.absent", 1)
    with pytest.raises(InvalidInput, match="exists already"):
        register(f"{package}.clean", OwnFilter(1, above_ten))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda records: pa.array([True]), "must return a boolean for each of the 2 records"),
        (lambda records: [True, True], "must return a boolean for each"),
        (lambda records: records["n"], "must return a boolean for each"),
        (lambda records: records["nowhere"], "the filter failed: KeyError"),
    ],
)
def test_a_function_that_fails_stops_the_read(lake: Lake, name: str, answer: Any, why: str) -> None:
    register(f"{name}b", OwnFilter(1, answer))
    pool = pool_in(lake, f"{name}b", call="@1(n)")
    pool.branch().append(pa.table({"k": [1, 2], "n": [5, 20]}))
    with pytest.raises(InvalidInput, match=why):
        seen(pool)


@pytest.mark.parametrize("call", ["", "@3", "@x(n)", "@3()", "@3(n,n)", "@3(n", "(n)"])
def test_a_text_that_is_no_call_is_refused(lake: Lake, name: str, call: str) -> None:
    with pytest.raises(InvalidInput, match=r"setting keep\.by=.*use NAME@VERSION"):
        pool_in(lake, name, call=call)


def test_the_fields_must_be_declared_and_of_an_aggregate_pools_key(lake: Lake, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"declare one that is not json: type\.m=TYPE"):
        pool_in(lake, name, call="@3(n,m)")
    with pytest.raises(InvalidInput, match="'n' is combined from many records"):
        pool_in(lake, name, "aggregate")
    pool = pool_in(lake, name)
    pool.branch().append(pa.table({"k": [1], "n": [5]}))
    lake.catalog.configure("p", {"type.n": ""})
    with pytest.raises(InvalidInput, match="field 'n' has no declared type; declare it"):
        seen(lake.pool("p"))
