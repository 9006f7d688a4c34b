"""The mutants that live for a reason: `local/mutation/survivors.toml`."""

from __future__ import annotations

from pathlib import Path

import msgspec

FILE = Path(__file__).parent / "survivors.toml"


class Survivor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change (`Change.name`) of a file that no test sees, and why that is right."""

    file: str
    change: str
    reason: str


class _Survivors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    survivor: tuple[Survivor, ...] = ()


def survivors() -> tuple[Survivor, ...]:
    """All of them, in the order of the file."""
    return msgspec.toml.decode(FILE.read_bytes(), type=_Survivors).survivor
