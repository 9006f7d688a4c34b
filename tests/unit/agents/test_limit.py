"""The limit of a run: which pieces of work go first, and what is said of the others."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import InvalidInput
from log_lake.agents.finding import MAX_WORK, handed_out, in_turns, within
from log_lake.agents.request import Request
from log_lake.agents.work import Work
from log_lake.lake import Lake
from tests.support.agents import find, reporter

report = reporter("compact")


def work(*pools: str) -> list[Work]:
    return [Work(lake="x", pool=name, title=f"{name}: {n}", task=n) for n, name in enumerate(pools)]


def numbers(all_work: list[Work]) -> list[int | None]:
    return [one.task for one in all_work]


def test_a_pool_with_many_pieces_holds_back_no_other_one() -> None:
    all_work = work("a", "a", "a", "b", "c", "c")
    for now in range(20):
        assert numbers(within(all_work, 3, now=now)) == [0, 3, 4]
        assert numbers(within(all_work, 4, now=now)) in ([0, 1, 3, 4], [0, 3, 4, 5])
        assert numbers(within(all_work, 99, now=now)) == [0, 1, 2, 3, 4, 5]


def test_no_pool_is_first_in_every_run() -> None:
    """Also if runs come each hour, and the pools that go first have new work each time."""
    first = Counter(
        within(work("a", "b", "c"), 1, now=1_800_000_000.0 + 3600 * n)[0].pool for n in range(300)
    )
    assert set(first) == {"a", "b", "c"}
    assert min(first.values()) > 60


class Shared(Work, frozen=True, kw_only=True):
    """Work of a pool that gives several pieces in a turn."""

    of_turn: int

    @property
    def share(self) -> int:
        return self.of_turn


def pieces(pool: str, count: int, share: int) -> list[Shared]:
    return [Shared(lake="x", pool=pool, of_turn=share, task=n) for n in range(count)]


def test_a_pool_gives_as_many_pieces_in_a_turn_as_its_share() -> None:
    all_work = [*pieces("large", 7, 3), *pieces("b", 2, 1), *pieces("c", 3, 1)]
    for now in range(20):
        ordered = [(one.pool, one.task) for one in in_turns(all_work, now=now)]
        names = [pool for pool, _ in ordered]
        for turn in (names[:5], names[5:10]):
            assert set(turn[:3]) == {"large", "b", "c"}, "each gives one before any gives its second"
            assert turn[3:] == ["large", "large"]
        assert sorted(names[10:]) == ["c", "large"]
        for pool in ("large", "b", "c"):
            of_pool = [task for name, task in ordered if name == pool]
            assert of_pool == sorted(of_pool, key=lambda task: task or 0)
        counted = Counter(one.pool for one in within(all_work, 10, now=now))
        assert counted == {"large": 6, "b": 2, "c": 2}


RUNS = [1_800_000_000.0 + 3600 * n for n in range(300)]
"""The times of runs that come each hour: always the same, so no test here depends on chance."""


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 1000)), min_size=1, max_size=8), st.data())
def test_a_limit_leaves_no_pool_out_for_long(pools: list[tuple[int, int]], data: st.DataObject) -> None:
    """Each of N pools has work in about `limit` of N runs, whatever shares and pieces the others have."""
    limit = data.draw(st.integers(1, len(pools)))
    all_work = [one for n, (count, share) in enumerate(pools) for one in pieces(f"p{n}", count, share)]
    served = Counter(pool for now in RUNS for pool in {one.pool for one in within(all_work, limit, now=now)})
    at_least = 0.75 * len(RUNS) / (len(pools) / limit + 1)
    assert {f"p{n}" for n in range(len(pools)) if served[f"p{n}"] < at_least} == set()


def test_a_share_far_above_the_limit_holds_back_no_pool() -> None:
    all_work = [
        one for n in range(20) for one in pieces(f"p{n:02}", 12 if n == 7 else 1, 1000 if n == 7 else 1)
    ]
    served = Counter(one.pool for now in RUNS for one in within(all_work, 10, now=now))
    assert len(served) == 20
    assert min(served.values()) > len(RUNS) / 3
    assert max(served.values()) < len(RUNS) * 2 / 3
    assert Counter(one.pool for one in within(all_work, 25, now=RUNS[0]))["p07"] == 6, (
        "what is left is its own"
    )


def test_neighbours_with_a_share_get_what_is_left_in_equal_parts() -> None:
    all_work = [one for n in range(8) for one in pieces(f"p{n}", 4, 4 if n in (3, 4) else 1)]
    second = Counter(one.pool for now in RUNS for one in within(all_work, 9, now=now) if one.task == 1)
    assert set(second) == {"p3", "p4"}
    assert min(second.values()) > len(RUNS) / 3


def test_without_a_limit_too_no_pool_is_first_in_every_run() -> None:
    first = Counter(in_turns(work("a", "a", "b", "c"), now=now)[0].pool for now in RUNS)
    assert set(first) == {"a", "b", "c"}
    assert min(first.values()) > 60
    names = {name: [one.pool for one in in_turns(work(*name), now=5.0)] for name in ("abc", "cba")}
    assert names["abc"] == names["cba"], "nor does it depend on the order in which pools were looked at"


def test_what_is_beyond_the_limit_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    handed = handed_out(work("a", "b", "c"), dry_run=False, nothing="", not_done="", limit=1)
    assert len(handed.work) == 1
    (left,) = handed.put_off
    assert left.title == "2 pieces of work left for the next run: the limit of a run is 1"
    assert caplog.messages == [left.title]


def test_a_run_without_a_limit_has_one_all_the_same() -> None:
    handed = handed_out(work(*("a" for _ in range(MAX_WORK + 1))), dry_run=False, nothing="", not_done="")
    assert (len(handed.work), len(handed.put_off)) == (MAX_WORK, 1)


def test_the_next_run_ingests_what_the_limit_left(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        for n in range(3):
            (folder / f"{n}.ndjson").write_text(f'{{"k": {n}}}\n')
        lake.create_pool(
            name,
            key="k",
            settings={"ingest.source": str(folder), "ingest.batch_files": "1", "ingest.batch_age": "0s"},
        )
    found = find("ingest", {"lake": lake.store.uri, "limit": 3})
    pools = [one["pool"] for one in found]
    assert pools in (["a", "a", "b", ""], ["a", "b", "b", ""]), "in turns"
    assert found[-1]["title"].startswith("3 pieces of work left for the next run")


def test_a_report_says_what_the_limit_left(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    found = find("compact", {"lake": lake.store.uri, "limit": 1})
    done = [
        {
            "pool": found[0]["pool"],
            "jobs": 1,
            "dropped": 0,
            "inputs": 9,
            "objects": 1,
            "size_in": 9,
            "size_out": 1,
        }
    ]
    done = [one | {"depth_before": 9, "depth_after": 1} for one in done]
    caplog.clear()
    assert report(found, done)["pools"] == 1
    assert "1 piece of work left for the next run: the limit of a run is 1" in caplog.messages


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two pools that are deep."""
    lake = Lake.create(str(tmp_path / "lake"))
    for name in ("a", "b"):
        pool = lake.create_pool(name, key="k")
        for n in range(9):
            pool.branch().append(pa.table({"k": [1, 2], "n": [n, n]}))
    return lake


def test_a_run_may_use_another_strategy_than_the_pools(lake: Lake) -> None:
    lake.configure_pool("a", {"compact.depth": "100", "compact.strategy": "depth"})
    params = {"lake": lake.store.uri, "pools": ["a"]}
    assert find("compact", params) == []
    (full,) = find("compact", {**params, "strategy": "full"})
    assert [len(job["inputs"]) for job in full["jobs"]] == [9]
    with pytest.raises(InvalidInput, match=r"unknown compact\.strategy 'newest'"):
        find("compact", {**params, "strategy": "newest"})


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "5"])
def test_a_limit_is_a_whole_number_from_one_on(value: Any) -> None:
    with pytest.raises(InvalidInput, match="'limit' must be a whole number of at least 1"):
        Request.read({"lake": "x", "limit": value}, also=("limit",))
