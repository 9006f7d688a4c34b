"""Runs the benchmarks named (all by default) and prints each measure as it is made: `make bench BENCH=scan`."""

from __future__ import annotations

import argparse
import importlib
import sys

from benchmarks import data
from benchmarks.measure import Measure
from lake_core.phrases import human_size

NAMES = (
    "zeek",
    "ingest",
    "files",
    "scan",
    "commits",
    "opening",
    "view",
    "compaction",
    "reading",
    "deletes",
    "growth",
    "erasure",
    "beside",
    "zng",
    "requests",
    "transactions",
    "retention",
    "ranges",
    "index",
    "rules",
    "clusters",
    "derived",
    "spark",
    "airflow",
    "flights",
)
MODULES = {"ranges": ("ranges", "ranges_memory", "ranges_spark")}
"""The modules of a benchmark, if it has others than the one that has its name."""
_LINE = "{:<38} {:>12} {:>8} {:>8} {:>12} {:>12} {:>9}  {}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make bench", description="Benchmarks; ratios are to the first line of a group."
    )
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME", help=", ".join(NAMES))
    names = parser.parse_args().names or NAMES
    for name in [module for asked in names for module in MODULES.get(asked, (asked,))]:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n{name}: {str(module.__doc__).splitlines()[0]}")
        titles = ("what", "records", "seconds", "cpu s", "records/s", "to the first", "memory", "")
        print(_LINE.format(*titles), flush=True)
        first: Measure | None = None
        try:
            for measure in module.measures():
                first = measure if first is None or measure.begins else first
                print(_row(measure, first), flush=True)
        finally:
            data.clear()
        if first is None:
            print("the data are not there")
    return 0


def _row(measure: Measure, first: Measure) -> str:
    rate = measure.records / measure.seconds
    return _LINE.format(
        measure.name,
        f"{measure.records:,}",
        f"{measure.seconds:.2f}",
        f"{measure.processor:.2f}" if measure.processor else "",
        f"{rate:,.0f}" if rate >= 1000 else f"{rate:.1f}",
        f"{rate / (first.records / first.seconds):.2f}",
        human_size(measure.peak),
        measure.note,
    ).rstrip()


if __name__ == "__main__":
    sys.exit(main())
