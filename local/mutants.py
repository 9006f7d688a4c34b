"""Breaks one comparison of `lake_core/history` at a time, in a copy, and says which the tests do not see.

    make mutants [N=n] [SEED=s]

The seed is the date by default, so that a run a day rotates over all of them.  A mutant that lives gets a test, or
a line with its reason in docs/simulation.md.  It is not part of CI: each mutant runs three folders of tests.
"""

from __future__ import annotations

import argparse
import ast
import datetime as dt
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path("lake_core/history")
TESTS = ["tests/unit/history", "tests/unit/lake", "tests/unit/vacuum"]
OTHERS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
TIMEOUT = 600
"""Seconds for the tests of one mutant: one that hangs counts as seen."""


def places(source: str) -> Iterator[tuple[int, int]]:
    """The comparisons that can be broken: their number in a walk of the source, and their line."""
    for number, node in enumerate(ast.walk(ast.parse(source))):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHERS:
            yield number, node.lineno


def broken(source: str, number: int) -> str:
    """The source with the comparison of this number turned into its neighbour."""
    tree = ast.parse(source)
    for at, node in enumerate(ast.walk(tree)):
        if at == number and isinstance(node, ast.Compare):
            node.ops[0] = OTHERS[type(node.ops[0])]()
    return ast.unparse(tree)


def is_seen(copy: Path, file: Path, source: str) -> bool:
    """Whether the tests fail with this source instead of that of the file."""
    kept = (copy / file).read_text()
    (copy / file).write_text(source)
    try:
        command = [sys.executable, "-m", "pytest", "-q", "-x", *TESTS]
        run = subprocess.run(command, cwd=copy, capture_output=True, timeout=TIMEOUT, check=False)
        return run.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        (copy / file).write_text(kept)


def main() -> int:
    """Print each mutant that lives; the status is 1 if one does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", default=dt.datetime.now(dt.UTC).date().isoformat())
    args = parser.parse_args()
    files = sorted(FOLDER.rglob("*.py"))
    everything = [(file, *place) for file in files for place in places(file.read_text())]
    chosen = random.Random(args.seed).sample(everything, min(args.count, len(everything)))
    alive = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("lake_core", "log_lake", "tests", "docs"):
            shutil.copytree(name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy("pyproject.toml", copy)
        for file, number, line in chosen:
            if not is_seen(copy, file, broken(file.read_text(), number)):
                alive += 1
                print(f"{file}:{line}: lives: {file.read_text().splitlines()[line - 1].strip()}", flush=True)
    print(f"{len(chosen)} of {len(everything)} mutants, {alive} live (seed {args.seed})")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
