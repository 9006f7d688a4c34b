"""Inputs of the benchmarks, made once below .run/bench: TPC-H lineitem by tpchgen-cli, and the Zeek logs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from local.services import ROOT

FOLDER = ROOT / ".run" / "bench"
_MADE = FOLDER / "work"
ZEEK = ROOT.parent / "shared" / "data" / "zeek" / "ndjson"
KEY = "l_shipdate,l_orderkey,l_linenumber"
PARTS = 8


def lineitem(scale: float = 2.0) -> list[str]:
    """Returns the Parquet files of lineitem, in order of l_orderkey: about six million records per unit of
    scale."""
    folder = FOLDER / f"lineitem-{scale:g}"
    done = folder / "done"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        tool = Path(sys.executable).with_name("tpchgen-cli")
        words = ["parquet", "-s", f"{scale:g}", "--tables", "lineitem", "--parts", str(PARTS)]
        subprocess.run([tool, *words, "--output-dir", str(folder)], check=True, stdout=subprocess.DEVNULL)
        done.touch()
    return sorted(str(p) for p in folder.rglob("*.parquet"))


def zeek() -> list[str]:
    """Returns the files of the Zeek logs, from $ZEEK or from beside the project; an empty list if there are
    none."""
    folder = Path(os.environ.get("ZEEK", ZEEK))
    return sorted(str(p) for p in folder.glob("*.ndjson.gz")) if folder.is_dir() else []


def fresh(name: str) -> str:
    """Returns a path below the benchmarks' folder at which nothing exists; `clear` removes what is made
    there."""
    path = _MADE / name
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    return str(path)


def copied(source: str, name: str) -> str:
    """Copies what is at `source` to a fresh path, and returns that path."""
    target = fresh(name)
    shutil.copytree(source, target)
    return target


def clear() -> None:
    """Deletes what benchmarks have made, because they write twelve million records several times. The inputs
    stay."""
    shutil.rmtree(_MADE, ignore_errors=True)
