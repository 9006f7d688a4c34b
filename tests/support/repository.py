"""Paths of the project, and of the data beside it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ZEEK = ROOT.parent / "shared" / "data" / "zeek" / "ndjson"
"""The folder of the Zeek logs, one NDJSON file each; without it, tests of them are skipped."""

AGENTS = (
    "checkpoint",
    "compact",
    "derive",
    "erasure",
    "index",
    "ingest",
    "intervals",
    "retention",
    "split",
    "tombstones",
)
"""The agents of the lake, by name. A new or removed agent must be changed here too."""

DAGS = ("apply", *AGENTS)
"""The DAG files, without their endings."""
