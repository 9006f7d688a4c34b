"""Makes one small change of the core at a time, in a copy, and lists the changes that no test notices.

    make mutants [N=n] [SEED=s] [ARGS='--reach FILE']

The default seed is the date, so that daily runs rotate over all changes.  First each test of `TESTS` runs once,
to find which lines it reaches.  A mutant then runs the tests that reach its line until one fails: those of its
own room first, then the others, the quickest first, as many as `--seconds` allow.  `--reach FILE` stores these
lines for the next run on the same code; if it names missing tests, the run ends with status 2.  For a mutant that
survives, write a test, or a reason in `local/mutation/survivors.toml`; it is then not tried again.
CI does not run this, because a run takes an hour.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path

import msgspec

from local.mutation.changes import LineChange, changed, changes

FOLDERS = (
    "lake_core/journal",
    "lake_core/history",
    "lake_core/checkpoints",
    "lake_core/records",
    "log_lake/leases",
    "log_lake/vacuum",
    "log_lake/erasure",
)
TESTS = (
    "tests/loading/test_limits.py",
    "tests/properties/test_ages.py",
    "tests/properties/test_expiry.py",
    *(
        f"tests/unit/{room}"
        for room in (
            "journal",
            "history",
            "checkpoints",
            "records",
            "leases",
            "lake",
            "vacuum",
            "erasure",
            "repair",
        )
    ),
)
TIMEOUT = 900
"""Seconds for the tests of one mutant; if they take longer, because the mutant hangs, it counts as noticed."""

NONE_RAN = (4, 5)
"""pytest's exit statuses if the tests that it was given do not exist, and if it found no test."""

SURVIVORS = Path(__file__).parent / "survivors.toml"
ReachOfTests = dict[str, tuple[float, dict[str, list[int]]]]


def copied(to: Path) -> Path:
    """A copy of everything that the tests need."""
    for name in (
        "lake_core",
        "log_lake",
        "tests",
        "docs",
        "local",
        "spark_apps",
        "pyspark_lake",
        "airflow_lake",
    ):
        shutil.copytree(name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy("pyproject.toml", to)
    return to


class Survivor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change (`LineChange.name`) of a file that no test notices, with the reason why no test needs to."""

    file: str
    change: str
    reason: str


class _Survivors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    survivor: tuple[Survivor, ...] = ()


def survivors() -> tuple[Survivor, ...]:
    """Returns the survivors in survivors.toml, in its order."""
    return msgspec.toml.decode(SURVIVORS.read_bytes(), type=_Survivors).survivor


def measured(copy: Path, file: Path) -> ReachOfTests:
    """The lines that each test reaches; read from the file if it exists, otherwise written to it."""
    if not file.exists():
        environment = {
            **os.environ,
            "LAKE_MUTATION_FOLDERS": ":".join(FOLDERS),
            "LAKE_MUTATION_REACH": str(file),
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "local.mutation.reach", *TESTS]
        subprocess.run(command, cwd=copy, env=environment, check=True)
    reach: ReachOfTests = json.loads(file.read_text())
    return reach


class NoTests(Exception):
    """pytest ran none of the tests that should notice a change, so there is no result."""


def is_seen(copy: Path, file: str, change: LineChange, tests: list[str]) -> bool:
    """Whether one of the tests fails with the change. Raises NoTests if they do not exist even without the
    change."""
    whole = (copy / file).read_text()
    (copy / file).write_text(changed(whole, change))
    try:
        status = pytest_of(copy, "-x", *tests).returncode
    except subprocess.TimeoutExpired:
        return True
    finally:
        (copy / file).write_text(whole)
    if status in NONE_RAN:  # the tests are not there, or the change breaks the import of a conftest.py
        without = pytest_of(copy, "--collect-only", *tests)
        if without.returncode:
            raise NoTests(f"{file}:{change.line}: its tests are not there:\n{without.stdout}{without.stderr}")
    return status != 0


def pytest_of(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The result of pytest in the copy.  Raises subprocess.TimeoutExpired after `TIMEOUT`."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *words],
        cwd=copy,
        capture_output=True,
        text=True,
        errors="backslashreplace",
        timeout=TIMEOUT,
        check=False,
    )


def reaching(reach: ReachOfTests, file: str, line: int) -> list[str]:
    """The tests that reach a line of a file, the quickest first."""
    return [
        test
        for test, (_, files) in sorted(reach.items(), key=lambda item: item[1][0])
        if line in files.get(file, ())
    ]


def batches(reach: ReachOfTests, file: str, line: int, *, seconds: float) -> list[list[str]]:
    """The tests that reach a line: those of the file's room, then the others; each batch takes at most `seconds`.

    The room's own tests see most changes, and pytest need not import the others for them.
    """
    own: list[str] = []
    others: list[str] = []
    for test in reaching(reach, file, line):
        (own if test.startswith(f"tests/unit/{Path(file).parts[1]}/") else others).append(test)
    return [batch for tests in (own, others) if (batch := _within(reach, tests, seconds=seconds))]


def _within(reach: ReachOfTests, tests: list[str], *, seconds: float) -> list[str]:
    ends = accumulate(reach[test][0] for test in tests)
    return [test for test, end in zip(tests, ends, strict=True) if end <= seconds]


def main() -> int:
    """Prints each surviving mutant.  The status is 1 if one survives, and 2 if its tests do not exist."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", default=dt.datetime.now(dt.UTC).date().isoformat())
    parser.add_argument("--reach", type=Path, help="file that keeps which test reaches what")
    parser.add_argument(
        "--workers", type=int, default=1, help="copies in which mutants are tried side by side"
    )
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="how long the tests of a mutant take (default: 120)"
    )
    parser.add_argument("--folder", action="append", help="only mutants below it; repeatable (default: all)")
    args = parser.parse_args()
    files = sorted(str(file) for folder in args.folder or FOLDERS for file in Path(folder).rglob("*.py"))
    listed = {(one.file, one.change) for one in survivors()}
    everything = [
        (file, change)
        for file in files
        for change in changes(Path(file).read_text())
        if (file, change.name) not in listed
    ]
    chosen = random.Random(args.seed).sample(everything, min(args.count, len(everything)))
    with tempfile.TemporaryDirectory() as folder:
        copies = [copied(Path(folder) / str(number)) for number in range(args.workers)]
        reach = measured(copies[0], args.reach or Path(folder) / "reach.json")

        def lives(at: int, file: str, change: LineChange) -> bool:
            tests = batches(reach, file, change.line, seconds=args.seconds)
            alive = not any(is_seen(copies[at], file, change, batch) for batch in tests)
            if alive:
                every = len(reaching(reach, file, change.line))
                why = (
                    f"{sum(map(len, tests))} of {every} tests that reach it ran"
                    if every
                    else "no test reaches it"
                )
                print(f"{file}:{change.line}: lives ({why}): {change.name}", flush=True)
            return alive

        def share(at: int) -> int:
            return sum(lives(at, *one) for one in chosen[at :: args.workers])

        with ThreadPoolExecutor(args.workers) as pool:
            try:
                alive = sum(pool.map(share, range(args.workers)))
            except NoTests as error:
                print(f"{error}\nmeasure again: --reach with the name of a new file", file=sys.stderr)
                return 2
    print(f"{len(chosen)} of {len(everything)} mutants, {alive} live (seed {args.seed})")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
