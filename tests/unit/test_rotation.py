"""Which tests CI runs of those that take long: each of them in one of the parts, all others in every part."""

from __future__ import annotations

import pytest

from tests.support.repository import ROOT
from tests.support.rotation import LAST, ROTATING, runs

LONG = [f"tests/simulation/test_pairs.py::test_seed[{number}]" for number in range(300)]


def test_each_long_test_is_in_one_part_but_the_last_and_the_parts_are_about_equal() -> None:
    parts = [[name for name in LONG if runs(name, f"{number}/4")] for number in (1, 2, 3)]
    assert sorted(name for part in parts for name in part) == sorted(LONG)
    assert min(map(len, parts)) > 80
    assert not any(runs(name, "4/4") for name in LONG)


def test_containers_run_in_the_last_part() -> None:
    drill = "tests/containers/test_drills.py::test_killed_while_spark_ingests_and_back[store]"
    assert [runs(drill, f"{number}/4") for number in (1, 2, 3, 4)] == [False, False, False, True]


def test_a_single_part_has_all_tests() -> None:
    assert all(runs(name, "1/1") for name in [*LONG, "tests/containers/test_stack.py::test_it"])


def test_all_other_tests_run_in_every_part() -> None:
    assert all(runs("tests/unit/test_naming.py::test_a_name", f"{number}/4") for number in (1, 2, 3, 4))


@pytest.mark.parametrize("part", ["0/4", "5/4", "1", "a/3", "1/", "-1/4"])
def test_a_part_that_is_none_is_refused(part: str) -> None:
    with pytest.raises(ValueError, match="such as 1/4"):
        runs(LONG[0], part)


def test_what_rotates_is_there() -> None:
    assert [begin for begin in (*ROTATING, *LAST) if not (ROOT / begin.partition("::")[0]).exists()] == []
