"""The lines of `make bench`: ratios of `spark` to those before, the same answer of every way; missed aims."""

from __future__ import annotations

import pytest

from benchmarks.airflow import aimed
from benchmarks.airflow_live import _measure
from benchmarks.measure import Measure
from benchmarks.spark import grouped


def line(name: str, seconds: float, note: str = "", processor: float = 0.0) -> Measure:
    return Measure(name, seconds, records=10, peak=1, note=note, processor=processor)


def test_lines_of_the_pool_have_their_ratios_to_the_others_in_time_and_processor_time() -> None:
    lines = [
        line("Parquet, three", 2.0, "77", processor=4.0),
        line("Iceberg, three", 4.0, "77"),
        line("pool, native, three", 3.0, "77", processor=2.0),
        line("pool, data source, three", 8.0, "77", processor=8.0),
    ]
    found = list(grouped(iter(lines)))
    assert [one.note for one in found] == [
        "",
        "",
        "1.50 (0.50) of Parquet; 0.75 of Iceberg",
        "4.00 (2.00) of Parquet; 2.00 of Iceberg",
    ]
    assert [one.begins for one in found] == [True, False, False, False]


def test_what_a_line_says_beside_an_answer_stays() -> None:
    found = list(
        grouped(iter([line("Delta, write", 4.0, "2 files"), line("pool, write", 2.0, "1 objects, depth 1")]))
    )
    assert [one.note for one in found] == ["2 files", "1 objects, depth 1; 0.50 of Delta"]


def test_ways_to_read_that_give_different_answers_end_the_benchmark() -> None:
    lines = grouped(iter([line("Parquet, three", 1.0, "77"), line("pool, native, three", 1.0, "78")]))
    next(lines)
    with pytest.raises(RuntimeError, match="pool, native, three: 78 is not the answer of the others, 77"):
        next(lines)


def test_only_aims_that_are_missed_are_named() -> None:
    found = aimed(line("all agents", 21.0, "no JVM"), ("seconds", 21.0, 20.0), ("mapped tasks", 0, 0))
    assert found.note == "no JVM; MISSED: seconds 21 > 20"
    assert aimed(line("all agents", 20.0, "no JVM"), ("seconds", 20.0, 20.0)).note == "no JVM"


def test_a_batch_is_the_median_of_its_warm_tries_with_the_share_of_airflow() -> None:
    found = _measure("landed to committed", [(30.0, 20.0), (8.0, 6.0), (4.0, 3.0), (9.0, 6.0)])
    assert found.seconds == 8.0
    assert found.note == "2.0 s (25%) Airflow's own; all tries 30.0, 8.0, 4.0, 9.0 s"
