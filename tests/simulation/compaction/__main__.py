"""Every strategy under every load, beside its theory: `make sim-compaction [ARGS="--days 14 --load late"]`.

`ARGS="--large"` simulates a pool of ten terabytes instead, with ranges and a thousand workers; it takes minutes.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from tests.simulation.compaction import large
from tests.simulation.compaction.loads import LOADS
from tests.simulation.compaction.picture import svg
from tests.simulation.compaction.report import Outcome, fitting, lines, simulate


def main() -> None:
    parser = argparse.ArgumentParser(prog="make sim-compaction", description=__doc__)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load", choices=LOADS, action="append", help="only this load; may be repeated")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw it there, as SVG")
    parser.add_argument("--large", action="store_true", help="a pool of ten terabytes, with ranges")
    parser.add_argument(
        "--scenario", choices=large.SCENARIOS, action="append", help="of --large, only this one"
    )
    parser.add_argument("--looks", type=int, default=48, help="hours of --large")
    args = parser.parse_args()
    begun = time.process_time()
    if args.large:
        scale = large.Scale()
        for name in args.scenario or large.SCENARIOS:
            pool = large.simulate(name, scale, looks=args.looks, seed=args.seed)
            print(*large.lines(name, pool, scale, seed=args.seed), "", sep="\n", flush=True)
        print(f"{time.process_time() - begun:.0f} s of processor time")
        return
    outcomes: list[Outcome] = []
    for load in args.load or LOADS:
        found = [simulate(load, strategy, days=args.days, seed=args.seed) for strategy in fitting(load)]
        print(*lines(found, days=args.days, seed=args.seed), "", sep="\n", flush=True)
        outcomes += found
    if args.picture:
        args.picture.write_text(svg(outcomes))
    print(f"{time.process_time() - begun:.0f} s of processor time")


if __name__ == "__main__":
    main()
