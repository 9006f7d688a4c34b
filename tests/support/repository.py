"""Where the project is, and the data beside it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ZEEK = ROOT.parent / "shared" / "data" / "zeek" / "ndjson"
"""The Zeek logs, one NDJSON file each; tests of them are skipped if they are not there."""

AGENTS = (
    "checkpoint",
    "compact",
    "erasure",
    "ingest",
    "intervals",
    "retention",
    "split",
    "tombstones",
)
"""The agents that there are, in the order of their names: an agent that comes or goes is said here."""

DAGS = ("apply", *AGENTS)
"""The DAG files, without their suffix."""
