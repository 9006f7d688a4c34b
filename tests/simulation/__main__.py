"""`make sim SEEDS=n [FROM=m]`: many seeds, a failing one is printed and can be run again alone.

With `--pairs` the seeds of `pairs`, and a table of who met whom; `--write` puts it into docs/simulation.md.  With
`--histories` those of `histories`: transactions over several pools.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from tests.simulation.histories.world import simulate_history
from tests.simulation.pair_actors import ACTORS
from tests.simulation.pairs import names_of, simulate_pair
from tests.simulation.seeds import CHUNK, CHUNKS, run_chunk
from tests.simulation.table import PairCounts, table_of, write_table
from tests.simulation.world import simulate


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make sim", description="The journal, pairs, or histories, under every fault."
    )
    parser.add_argument("seeds", type=int, nargs="?", default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--pairs", action="store_true", help="every two who work on a pool, not the journal")
    parser.add_argument("--actor", choices=[*ACTORS, ""], default="", help="only pairs with this one")
    parser.add_argument("--histories", action="store_true", help="transactions over several pools")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--write", action="store_true", help="put the table of pairs into docs/simulation.md")
    args = parser.parse_args()
    args.pairs = args.pairs or bool(args.actor)
    begun, last = time.monotonic(), args.first + args.seeds
    seeds = [seed for seed in range(args.first, last) if not args.actor or args.actor in names_of(seed)]
    chunks = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    counted: Counter[str] = Counter()
    failed: dict[int, str] = {}
    of_journal = simulate_history if args.histories else simulate
    run = partial(run_chunk, simulate_pair if args.pairs else of_journal)
    at_once = CHUNKS * args.processes
    # New processes now and then, since their memory grows; `max_tasks_per_child` may hang (CPython 115634).
    for begin in range(0, len(chunks), at_once):
        with ProcessPoolExecutor(args.processes, get_context("spawn")) as pool:
            for done, (outcomes, violations) in enumerate(pool.map(run, chunks[begin : begin + at_once]), 1):
                counted.update(outcomes)
                for violation in violations.values():
                    print(violation, flush=True)
                failed |= violations
                if sys.stderr.isatty():
                    print(f"\r{(begin + done) * CHUNK:,} seeds", end="", file=sys.stderr)
    print(f"{len(seeds):,} seeds in {time.monotonic() - begun:.0f} s, {len(failed)} failed")
    for what, times in sorted(counted.items()):
        print(f"  {what:44} {times:12,}")
    if args.pairs:
        counts = PairCounts(
            Counter(map(names_of, seeds)),
            Counter(names_of(seed) for seed in failed),
        )
        print(table_of(counts))
        if args.write:
            write_table(counts)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
