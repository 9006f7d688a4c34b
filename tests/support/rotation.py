"""Chooses slow tests that rarely break: CI runs those of the rooms that a commit changes, and a part of the
others.

    LAKE_TEST_PART=1/5     the first of five parts of the slow tests; all other tests run anyway
    LAKE_CI_BASE=abc123    the changes since this commit decide, instead of those since the parent of HEAD
                           (a CI that runs once for several commits sets it; otherwise it sees only the last one)

Without a part all tests run, as in `make test` on a developer's machine.

First the changes of the commit decide: if it changes a room, or a slow test itself, the slow tests of that room
run, in the order of `SLOW`, as long as they and the part take no more than `MINUTES`. The last part has the
tests with containers, which leave no time for others: a commit that changes their rooms runs them instead of
its part. Any other commit runs its part, so every slow test has run after all parts have had their turn. The
other parts take about the same time, by the minutes in the table. A clone that lacks the parent of HEAD runs
only its part.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.repository import ROOT


@dataclass(frozen=True)
class Slow:
    """Tests whose names begin with this text, the minutes that they take, and the rooms that make them run if they
    change."""

    begin: str
    minutes: float
    rooms: tuple[str, ...]

    def is_changed_by(self, path: str) -> bool:
        return path.startswith(self.rooms) or path.startswith(self.begin.partition("::")[0])


LAST = "containers"
"""The folder of the tests that make up the last part."""

MINUTES = 21.0
"""The most minutes of slow tests in one run (decision 209)."""

OF_HISTORIES = ("lake_core/journal/", "lake_core/history/", "lake_core/checkpoints/", "lake_core/catalog/")
OF_VALUES = (
    "lake_core/keys/",
    "lake_core/values/",
    "lake_core/schemas/",
    "lake_core/conditions/",
    "log_lake/columns/",
    "log_lake/texts/",
)
OF_READING = ("log_lake/reading/", "log_lake/combine/", "log_lake/objects/", "log_lake/where/")
OF_WORKERS = ("spark_apps/", "log_lake/workers.py")
OF_VIEW = ("airflow_lake/view/", "log_lake/view/")
OF_AIRFLOW = ("airflow_lake/", "dags/", "local/")

SLOW = (
    Slow(
        "tests/contract/test_killed_transactions.py",
        1.0,
        ("log_lake/lake/transactions.py", "lake_core/history/transactions/"),
    ),
    Slow("tests/contract/", 2.0, ("lake_core/store/", "log_lake/stores/", "tests/support/servers/")),
    Slow("tests/simulation/", 1.5, (*OF_HISTORIES, "log_lake/vacuum/", "log_lake/agents/")),
    Slow("tests/models/", 0.5, ("lake_core/journal/", "lake_core/history/")),
    Slow(
        "tests/unit/transactions/test_killed_and_interleaved.py",
        0.5,
        ("lake_core/history/", "log_lake/lake/transactions.py", "log_lake/lake/moment.py"),
    ),
    Slow(
        "tests/spark/test_clones.py",
        0.5,
        ("log_lake/lake/clones.py", "lake_core/naming.py", "spark_apps/native/"),
    ),
    Slow("tests/airflow/view/test_page.py", 1.0, OF_VIEW),
    Slow("tests/airflow/view/test_starting.py", 1.0, OF_VIEW),
    Slow("tests/airflow/test_submitted.py", 2.0, ("airflow_lake/groups/", "tests/support/yarn/")),
    Slow("tests/airflow/test_intervals_dag.py", 2.0, ("airflow_lake/groups/", "log_lake/agents/intervals/")),
    Slow("tests/airflow/test_provider_on_airflow.py", 4.0, OF_AIRFLOW),
    Slow(
        "tests/airflow/test_coverage_dag.py",
        2.0,
        ("airflow_lake/sensors/", "log_lake/coverage/", "examples/visits.py"),
    ),
    Slow(
        "tests/airflow/test_shop_night.py",
        4.0,
        ("examples/shop_night.py",),
    ),
    Slow("tests/airflow/test_opentelemetry.py", 0.5, ("log_lake/measuring.py", "lake_core/store/meter.py")),
    Slow("tests/airflow/test_lineage.py", 1.0, ("airflow_lake/",)),
    Slow(
        "tests/airflow/test_transaction_group.py",
        1.5,
        ("airflow_lake/groups/", "airflow_lake/operators/", "log_lake/lake/transactions.py"),
    ),
    Slow(
        "tests/spark/test_connector.py", 3.0, ("spark_apps/native/", "lake_core/store/", "log_lake/stores/")
    ),
    Slow("tests/spark/test_native.py", 1.0, ("spark_apps/native/", *OF_READING)),
    Slow("tests/spark/test_masters.py", 2.0, (*OF_WORKERS, "pyspark_lake/")),
    Slow("tests/spark/test_kills.py", 1.0, (*OF_WORKERS, "log_lake/agents/ingest/")),
    Slow(
        "tests/spark/test_bulk.py", 1.0, ("spark_apps/exchange.py", "spark_apps/frames/", "log_lake/loading/")
    ),
    Slow("tests/spark/test_stream_reader.py", 1.0, ("spark_apps/datasource/",)),
    Slow("tests/spark/test_stream_writer.py::test_spark_killed", 1.0, ("spark_apps/datasource/",)),
    Slow("tests/spark/test_recipes.py", 1.0, ("spark_apps/datasource/", "pyspark_lake/", "docs/spark.md")),
    Slow("tests/spark/test_conversion.py", 1.0, ("spark_apps/datasource/", *OF_VALUES)),
    Slow("tests/spark/test_iceberg.py", 1.0, ("log_lake/publish/",)),
    Slow("tests/cli/test_service.py", 0.5, ("log_lake/service/", "log_lake/iceberg_catalog/")),
    Slow("tests/formats/test_trino_reads_iceberg.py", 1.5, ("log_lake/publish/", "tests/support/trino/")),
    Slow(
        "tests/formats/test_programs_attach_the_catalog.py",
        1.0,
        ("log_lake/publish/", "log_lake/iceberg_catalog/"),
    ),
    Slow(
        "tests/properties/test_lake_machine.py",
        1.0,
        (*OF_HISTORIES, "log_lake/lake/", "log_lake/compaction/"),
    ),
    Slow("tests/properties/test_merge_ways.py", 1.0, OF_READING),
    Slow("tests/properties/", 3.0, ("lake_core/", "log_lake/")),
    Slow(
        "tests/acceptance/",
        3.0,
        ("log_lake/loading/", "log_lake/reading/", "log_lake/agents/", "log_lake/dlt/"),
    ),
    Slow(
        "tests/unit/rights/test_forged_end_to_end.py",
        3.0,
        (*OF_HISTORIES, "lake_core/records/", "log_lake/erasure/", "log_lake/vacuum/", "log_lake/repair/"),
    ),
    Slow("tests/wheel/test_quick_start.py", 1.0, ("docs/airflow-quickstart.md", "pyproject.toml", "uv.lock")),
    Slow("tests/loading/test_kafka.py", 0.5, ("log_lake/kafka/", "tests/support/kafka/")),
    Slow("tests/containers/", 14.0, ("deploy/", "docker-compose.yaml", "tests/support/containers/")),
)
"""The slow tests. A test belongs to the first entry with whose text its name begins. A room is given by the
beginning of its paths."""


@dataclass(frozen=True)
class Choice:
    """The slow tests of one run. `said` is a line that names them and gives the reason."""

    slow: frozenset[str]
    said: str

    def runs(self, name: str, *, table: Sequence[Slow] = SLOW) -> bool:
        """Whether the test with this name runs: it is not slow, or it is one of these."""
        entry = next((entry for entry in table if name.startswith(entry.begin)), None)
        return entry is None or entry.begin in self.slow


@dataclass(frozen=True)
class Diff:
    """The paths that changed since a commit."""

    since: str
    paths: tuple[str, ...]


def parts(count: int, *, table: Sequence[Slow] = SLOW) -> list[list[Slow]]:
    """Divides all slow tests into parts: those with containers are the last one, the others are spread evenly by
    their minutes."""
    found: list[list[Slow]] = [[] for _ in range(count)]
    for entry in sorted(table, key=lambda entry: (-entry.minutes, entry.begin)):
        if is_last(entry):
            found[-1].append(entry)
        else:
            min(found[: max(count - 1, 1)], key=minutes).append(entry)
    return found


def is_last(entry: Slow) -> bool:
    return entry.begin == f"tests/{LAST}/"


def minutes(entries: Sequence[Slow]) -> float:
    return sum(entry.minutes for entry in entries)


def choose(part: str, diff: Diff | None, *, table: Sequence[Slow] = SLOW, bound: float = MINUTES) -> Choice:
    """Returns the part, and the tests for which the changes ask, within `bound` minutes. Raises ValueError for a
    bad part.

    If the changes ask for the containers, these take the place of the part.
    """
    number, slash, count = part.partition("/")
    if not (slash and number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise ValueError(f"LAKE_TEST_PART={part!r}: a part is a number and how many there are, such as 1/5")
    rotated = parts(int(count), table=table)[int(number) - 1]
    asked = [] if diff is None else [entry for entry in table if any(map(entry.is_changed_by, diff.paths))]
    instead = [entry for entry in asked if is_last(entry) and entry not in rotated]
    chosen = instead or rotated
    said = f"{names(instead)} in place of part {part}" if instead else f"part {part} has {names(rotated)}"
    added: list[Slow] = []
    left_out: list[Slow] = []
    for entry in asked:
        if entry not in chosen:
            fits = minutes([*chosen, *added, entry]) <= bound
            (added if fits else left_out).append(entry)
    chosen = [*added, *chosen]
    return Choice(
        frozenset(entry.begin for entry in chosen),
        f"slow tests: {minutes(chosen):.0f} minutes of {minutes(table):.0f}; {said}; "
        f"{explained(diff, added, left_out)}",
    )


def explained(diff: Diff | None, added: Sequence[Slow], left_out: Sequence[Slow]) -> str:
    """Says which tests the changes added, and for which they asked in vain."""
    if diff is None:
        return "HEAD has no parent here, so its diff adds none"
    said = f"the diff since {diff.since} ({len(diff.paths)} paths) adds {names(added)}"
    return f"{said}, but for want of time not {names(left_out)}" if left_out else said


def names(entries: Sequence[Slow]) -> str:
    return ", ".join(entry.begin.removeprefix("tests/") for entry in entries) or "none"


def chosen(environ: Mapping[str, str], *, root: Path = ROOT) -> Choice | None:
    """Returns the slow tests for which the environment and the commit ask; None: all of them."""
    part = environ.get("LAKE_TEST_PART", "")
    return choose(part, diff_of_head(root, environ.get("LAKE_CI_BASE", ""))) if part else None


def diff_of_head(root: Path, base: str = "") -> Diff | None:
    """Returns what HEAD has changed since it branched from `base`; None if HEAD has no parent here.

    If there is no such commit, or it already contains HEAD, returns what HEAD has changed since its parent.
    """
    head = git(root, "rev-parse", "HEAD")
    for since in (base, "HEAD^"):
        if since and not since.startswith("-"):
            fork = git(root, "merge-base", since, "HEAD")
            if not fork or fork == head:
                continue
            paths = git(root, "diff", "--name-only", "--no-renames", "-z", fork.strip(), "HEAD")
            if paths is not None:
                return Diff(fork[:9], tuple(filter(None, paths.split("\0"))))
    return None


def git(root: Path, *words: str) -> str | None:
    """Returns what git prints; None if it fails or is not installed."""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
