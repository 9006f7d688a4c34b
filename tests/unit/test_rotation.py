"""Which of the slow tests CI runs: those of the rooms that the commit changes, and a part of the others."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.repository import ROOT
from tests.support.rotation import (
    LAST,
    MINUTES,
    SLOW,
    Diff,
    Slow,
    choose,
    chosen,
    diff_of_head,
    minutes,
    parts,
)

STORE = Slow("tests/contract/", 3.0, ("lake_core/store/",))
KEYS = Slow("tests/properties/test_keys.py", 2.0, ("lake_core/keys/", "lake_core/values/"))
REST = Slow("tests/properties/", 4.0, ("lake_core/",))
CONTAINERS = f"tests/{LAST}/"
ONE = Slow("tests/airflow/test_a.py::test_long", 5.0, ("airflow_lake/",))
IMAGES = Slow(CONTAINERS, 9.0, ("deploy/",))
TABLE = (STORE, KEYS, REST, ONE, IMAGES)


def slow(part: str, *paths: str, bound: float = 100.0) -> list[Slow]:
    """What a commit that changed the paths runs."""
    choice = choose(part, Diff("abc", paths), table=TABLE, bound=bound)
    return [entry for entry in TABLE if entry.begin in choice.slow]


def test_without_changes_each_slow_test_is_in_one_part_and_the_containers_are_in_the_last() -> None:
    rounds = [slow(f"{number}/3") for number in (1, 2, 3)]
    assert sorted(entry.begin for part in rounds for entry in part) == sorted(one.begin for one in TABLE)
    assert rounds[2] == [IMAGES]
    assert [minutes(part) for part in rounds] == [7.0, 7.0, 9.0]
    assert slow("1/1") == list(TABLE), "a single part has all"


def test_a_changed_room_adds_its_slow_tests_in_every_part() -> None:
    for number in (1, 2, 3):
        assert STORE in slow(f"{number}/3", "docs/store.md", "lake_core/store/s3.py")
        assert slow(f"{number}/3", "README.md", "lake_core.md") == slow(f"{number}/3")


def test_containers_that_a_diff_asks_for_take_the_place_of_the_part() -> None:
    for number in (1, 2, 3):
        for path in ("deploy/Dockerfile", f"tests/{LAST}/test_stack.py"):
            assert slow(f"{number}/3", path, bound=9.0) == [IMAGES]
        assert slow(f"{number}/3", "deploy/Dockerfile", "lake_core/store/a.py", bound=12.0) == [STORE, IMAGES]
    said = choose("1/3", Diff("abc", ("deploy/a", "airflow_lake/b")), table=TABLE, bound=9.0).said
    assert said == (
        "slow tests: 9 minutes of 23; containers/ in place of part 1/3; "
        "the diff since abc (2 paths) adds none, but for want of time not airflow/test_a.py::test_long"
    )


def test_a_changed_slow_test_runs_itself() -> None:
    for path in ("tests/contract/conftest.py", "tests/airflow/test_a.py"):
        (own,) = [entry for entry in TABLE if path.startswith(entry.begin.partition("::")[0])]
        assert all(own in slow(f"{number}/3", path) for number in (1, 2, 3))


def test_a_diff_adds_in_the_order_of_the_table_what_fits_beside_the_part() -> None:
    everything = [room for entry in TABLE if entry is not IMAGES for room in entry.rooms]
    part = slow("1/3")
    assert minutes(part) == 7.0
    for bound in range(7, 30):
        ran = slow("1/3", *everything, bound=float(bound))
        assert set(part) <= set(ran), "the part is there in any case"
        assert minutes(ran) <= bound
        left = [entry for entry in TABLE if entry not in ran and entry is not IMAGES]
        assert all(minutes([*ran, entry]) > bound for entry in left), "what fits is taken"
    assert STORE in slow("1/3", *everything, bound=10.0) or STORE in part


def test_the_line_says_the_part_what_the_diff_adds_and_what_has_no_time() -> None:
    said = choose("3/3", Diff("abc", ("lake_core/store/a.py", "x")), table=TABLE, bound=13.0).said
    assert said == (
        "slow tests: 12 minutes of 23; part 3/3 has containers/; "
        "the diff since abc (2 paths) adds contract/, but for want of time not properties/"
    )
    said = choose("3/3", Diff("abc", ("x",)), table=TABLE).said
    assert said.endswith("part 3/3 has containers/; the diff since abc (1 paths) adds none")
    said = choose("3/3", None, table=TABLE).said
    assert said.endswith("part 3/3 has containers/; HEAD has no parent here, so its diff adds none")


def test_a_slow_test_runs_if_it_was_chosen_and_all_others_run_anyhow() -> None:
    choice = choose("3/3", Diff("abc", ("lake_core/keys/text.py",)), table=TABLE)
    names = {
        "tests/properties/test_keys.py::test_order[1]": True,
        "tests/properties/test_scan.py::test_it": True,
        "tests/contract/test_store.py::test_it": False,
        "tests/airflow/test_a.py::test_long[x]": False,
        "tests/airflow/test_a.py::test_short": True,
        f"tests/{LAST}/test_stack.py::test_it": True,
        "tests/unit/test_naming.py::test_a_name": True,
    }
    assert {name: choice.runs(name, table=TABLE) for name in names} == names


@pytest.mark.parametrize("part", ["0/4", "5/4", "1", "a/3", "1/", "-1/4"])
def test_a_part_that_is_none_is_refused(part: str) -> None:
    with pytest.raises(ValueError, match="such as 1/5"):
        chosen({"LAKE_TEST_PART": part})


def test_without_a_part_all_tests_run() -> None:
    assert chosen({}) is None
    assert chosen({"LAKE_CI_BASE": "HEAD^"}) is None


def git(folder: Path, *words: str) -> str:
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *author, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three commits: each adds a file, the last one moves the first's as well."""
    folder = tmp_path / "it"
    folder.mkdir()
    git(folder, "init", "-q")
    for number in range(3):
        (folder / f"f{number}.py").write_text(f"x = {number}\n")
        if number == 2:
            (folder / "f0.py").rename(folder / "a name.py")
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", str(number))
    return folder


def test_the_diff_of_head_is_that_since_its_parent_or_since_the_base(repository: Path) -> None:
    diff = diff_of_head(repository)
    assert diff is not None
    assert diff.paths == ("a name.py", "f0.py", "f2.py"), "both names of what was moved"
    assert diff.since == git(repository, "rev-parse", "HEAD^")[:9]
    first = git(repository, "rev-parse", "HEAD~2")
    assert (since := diff_of_head(repository, first)) is not None
    assert (since.since, since.paths) == (first[:9], ("a name.py", "f0.py", "f1.py", "f2.py"))


def test_of_a_base_that_went_on_only_what_head_changed_counts(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "base", "HEAD^")
    (repository / "of_base.py").write_text("")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "on the base")
    git(repository, "checkout", "-q", "-")
    assert (diff := diff_of_head(repository, "base")) is not None
    assert diff.paths == ("a name.py", "f0.py", "f2.py")


@pytest.mark.parametrize("base", ["0" * 40, "no-such", "--output=x", ""])
def test_a_base_that_is_not_there_leaves_the_parent(repository: Path, base: str) -> None:
    assert diff_of_head(repository, base) == diff_of_head(repository)


def test_a_base_that_already_has_head_leaves_the_parent(repository: Path) -> None:
    git(repository, "branch", "later")
    git(repository, "checkout", "-q", "--detach", "HEAD^")
    for base in ("later", "HEAD"):
        assert (diff := diff_of_head(repository, base)) is not None
        assert diff.paths == ("f1.py",)
        assert diff == diff_of_head(repository)


def test_a_shallow_clone_and_a_folder_without_git_have_no_diff(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", "shallow")
    for folder in (tmp_path / "shallow", tmp_path):
        assert diff_of_head(folder) is None
        choice = chosen({"LAKE_TEST_PART": "1/4"}, root=folder)
        assert choice is not None
        assert choice == choose("1/4", None)


# --- the table itself, in as many parts as CI has

(OF_CI,) = set(re.findall(r"% (\d+) \+ 1\)\)/(\d+)", (ROOT / ".ci/run").read_text()))
COUNT = int(OF_CI[1])
PARTS = [f"{number}/{COUNT}" for number in range(1, COUNT + 1)]


def test_ci_chooses_each_part_and_no_other() -> None:
    assert set(OF_CI) == {str(COUNT)}


def test_what_is_in_the_table_is_there() -> None:
    begins = [entry.begin.partition("::")[0] for entry in SLOW]
    rooms = sorted({room for entry in SLOW for room in entry.rooms})
    assert [path for path in (*begins, *rooms) if not (ROOT / path).exists()] == []
    assert all(path.endswith("/") == (ROOT / path).is_dir() for path in (*begins, *rooms))


def test_no_entry_hides_a_later_one() -> None:
    hidden = [b.begin for i, a in enumerate(SLOW) for b in SLOW[i + 1 :] if b.begin.startswith(a.begin)]
    assert hidden == []


def test_whatever_a_commit_changes_no_part_takes_longer_than_the_bound() -> None:
    others = tuple(room for entry in SLOW if entry.begin != CONTAINERS for room in entry.rooms)
    for part in PARTS:
        for paths in (others, (*others, "deploy/"), ()):
            choice = choose(part, Diff("abc", paths))
            assert sum(entry.minutes for entry in SLOW if entry.begin in choice.slow) <= MINUTES


def test_a_commit_that_changes_the_containers_runs_them_in_every_part() -> None:
    (containers,) = [entry for entry in SLOW if entry.begin == CONTAINERS]
    for room in (*containers.rooms, f"{CONTAINERS}test_stack.py"):
        assert all(CONTAINERS in choose(part, Diff("abc", (room,))).slow for part in PARTS)


@pytest.mark.parametrize("entry", SLOW, ids=lambda entry: entry.begin)
def test_what_a_room_asks_for_fits_beside_some_part_that_is_not_its_own(entry: Slow) -> None:
    own = [part for part, slow in zip(PARTS, parts(len(PARTS)), strict=True) if entry in slow]
    for room in entry.rooms:
        ran = [part for part in PARTS if entry.begin in choose(part, Diff("abc", (room,))).slow]
        assert set(ran) > set(own), room


@pytest.mark.parametrize(
    ("path", "begin"),
    [
        ("log_lake/columns/variant.py", "tests/spark/test_conversion.py"),
        ("log_lake/texts/exact.py", "tests/spark/test_conversion.py"),
        ("log_lake/where/parse.py", "tests/spark/test_native.py"),
        ("log_lake/where/parse.py", "tests/properties/test_merge_ways.py"),
        ("log_lake/workers.py", "tests/spark/test_masters.py"),
        ("spark_apps/workers.py", "tests/spark/test_kills.py"),
        ("log_lake/workers.py", "tests/spark/test_kills.py"),
    ],
)
def test_rooms_that_moved_still_ask_for_their_tests(path: str, begin: str) -> None:
    assert begin in [entry.begin for entry in SLOW if entry.is_changed_by(path)]


def test_the_parts_take_about_as_long() -> None:
    *others, last = [minutes(part) for part in parts(len(PARTS))]
    assert max(others) - min(others) <= max(entry.minutes for entry in SLOW) / 2
    assert last <= MINUTES
