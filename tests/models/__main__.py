"""`make models`: Spin on every scene of every model, and on each model with one rule broken; a line for each."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.models.spin import compiled, rules
from tests.models.table import MODELS


def main() -> int:
    spin, cc = shutil.which("spin"), shutil.which("cc")
    if spin is None or cc is None:
        print("make models needs spin and cc; as root: apt-get install spin gcc libc6-dev", file=sys.stderr)
        return 2
    failed = 0
    for name, model in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            checker = compiled(name, Path(folder), spin=spin, cc=cc)
            for scene in model.right:
                outcome = checker.run(scene)
                failed += bool(outcome.violated)
                print(
                    f"{name}: {scene}: {outcome.violated or 'holds'}, {outcome.states:,} states", flush=True
                )
            for breach in model.breaches:
                outcome = checker.run(breach.scene, broken=breach.rule)
                failed += breach.violates not in outcome.violated
                says = next(i.says for i in model.invariants if i.printed == breach.violates)
                found = f"breaks: {says}" if breach.violates in outcome.violated else "IS NOT FOUND"
                print(f"{name}: {rules(name)[breach.rule][1]}: {found}", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
