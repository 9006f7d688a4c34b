"""`python -m tests.support.kills.lost_answers URI --kills N`: see `drill`; LAKE_S3 says how to reach the server."""

from __future__ import annotations

import argparse
import sys

from tests.support.kills.lost_answers.run import drilled


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("uri")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.06)
    args = parser.parse_args()
    print(drilled(args.uri, kills=args.kills, seed=args.seed, share=args.share))
    return 0


if __name__ == "__main__":
    sys.exit(main())
