"""`make sim SEEDS=n [FROM=m]`: many seeds, a failing one is printed and can be run again alone."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.world import Violation, simulate


def _chunk(seeds: range) -> tuple[dict[str, int], list[str]]:
    logging.disable(logging.WARNING)
    counted: dict[str, int] = {}
    failed: list[str] = []
    for seed in seeds:
        try:
            for what, times in simulate(seed).items():
                counted[what] = counted.get(what, 0) + times
        except Violation as violation:
            failed.append(str(violation))
    return counted, failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sim", description="The journal under every fault.")
    parser.add_argument("seeds", type=int, nargs="?", default=1000)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    begun = time.monotonic()
    chunks = [
        range(start, min(start + 100, args.first + args.seeds))
        for start in range(args.first, args.first + args.seeds, 100)
    ]
    counted: dict[str, int] = {}
    failed: list[str] = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for done, (outcomes, violations) in enumerate(pool.map(_chunk, chunks), 1):
            for what, times in outcomes.items():
                counted[what] = counted.get(what, 0) + times
            for violation in violations:
                print(violation, flush=True)
            failed += violations
            if sys.stderr.isatty():
                print(f"\r{done * 100:,} seeds", end="", file=sys.stderr)
    print(f"{args.seeds:,} seeds in {time.monotonic() - begun:.0f} s, {len(failed)} failed")
    for what, times in sorted(counted.items()):
        print(f"  {what:32} {times:12,}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
