"""What a run directory stores about each service that was started: one JSON file for each."""

from __future__ import annotations

from pathlib import Path

import msgspec

from local.processes import ProcessIdentity


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A service: its keeper, its port, and the settings it was started with."""

    service: str
    keeper: ProcessIdentity
    mark: str
    log: str
    ports: dict[str, int]
    lake: str
    settings: str
    """A hash of all other settings it was started with. Another caller may use the service only if its own hash is
    equal."""


def write(path: Path, started: Started) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(started)))
    draft.replace(path)


def read(path: Path) -> Started | None:
    """The record; None if it is missing or cannot be read (the keeper is then found by its mark)."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Started)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
