"""The lake of a command, with the metadata of its transactions."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lake_core.errors import InvalidInput
from log_lake.lake import Lake


def open_lake(args: argparse.Namespace) -> Lake:
    """Returns the lake that `--lake` names, with the metadata that `--meta` gives."""
    return Lake.open(args.lake, metadata=_metadata(getattr(args, "meta", ())))


def _metadata(words: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or name in pairs:
            raise InvalidInput(f"--meta {word!r}: write NAME=TEXT, each name once")
        pairs[name] = value
    return pairs
