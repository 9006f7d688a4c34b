"""Tests that take long and rarely break: CI runs a part of them, another one for each commit (`.ci/run`).

    LAKE_TEST_PART=1/4    of the tests below, those of the first of four parts; all others run whatever it says

Without it all tests run, as in `make test` on a developer's machine.  A test is in the part that its name gives, so
that parts are about equal and a commit's part is the same each time.  The last part is that of the containers,
which take as long as all others of a part; `.ci/run` starts them for it.
"""

from __future__ import annotations

import zlib

ROTATING = (
    "tests/acceptance/",
    "tests/airflow/test_intervals_dag.py",
    "tests/airflow/test_provider_on_airflow.py::test_nothing_is_deleted_before_a_person",
    "tests/airflow/test_submitted.py",
    "tests/airflow/view/test_page.py",
    "tests/contract/",
    "tests/properties/",
    "tests/simulation/",
    "tests/spark/test_connector.py",
    "tests/spark/test_conversion.py",
    "tests/spark/test_kills.py",
    "tests/spark/test_masters.py",
    "tests/spark/test_native.py",
    "tests/spark/test_recipes.py",
    "tests/spark/test_stream_writer.py::test_spark_killed",
    "tests/wheel/test_quick_start.py",
)
"""Begins of the names of these tests."""


LAST = ("tests/containers/",)
"""Begins of the names of the tests of the last part."""


def runs(name: str, part: str) -> bool:
    """Whether the test of that name belongs to a run of the part.  Raises ValueError for a part that is none."""
    number, slash, count = part.partition("/")
    if not (slash and number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise ValueError(f"LAKE_TEST_PART={part!r}: a part is a number and how many there are, such as 1/4")
    if name.startswith(LAST):
        return number == count
    if not name.startswith(ROTATING):
        return True
    return zlib.crc32(name.encode()) % max(int(count) - 1, 1) == int(number) - 1
