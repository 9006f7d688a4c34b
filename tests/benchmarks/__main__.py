"""Runs the benchmarks named (all by default) and prints a table each: `make bench`, `make bench BENCH=scan`."""

from __future__ import annotations

import argparse
import importlib
import sys

from lake_core.cli.output import human_size, print_table
from tests.benchmarks.measure import Measure

NAMES = ("zeek", "ingest", "scan", "commits", "opening", "compaction", "reading")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make bench", description="Benchmarks; ratios are to the first line."
    )
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME", help=", ".join(NAMES))
    for name in parser.parse_args().names or NAMES:
        module = importlib.import_module(f"tests.benchmarks.{name}")
        print(f"\n{name}: {str(module.__doc__).splitlines()[0]}")
        found = module.measures()
        print_table([_row(m, found[0]) for m in found], empty="the data are not there")
        sys.stdout.flush()
    return 0


def _row(measure: Measure, first: Measure) -> dict[str, object]:
    rate = measure.records / measure.seconds
    return {
        "what": measure.name,
        "records": measure.records,
        "seconds": f"{measure.seconds:8.2f}",
        "records/s": round(rate),
        "rate to the first": f"{rate / (first.records / first.seconds):17.2f}",
        "peak memory": human_size(measure.peak).rjust(11),
        "": measure.note,
    }


if __name__ == "__main__":
    sys.exit(main())
