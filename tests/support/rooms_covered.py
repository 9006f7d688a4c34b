"""How much of each room the fast tests run: a line for each room, the least covered first; `make coverage`.

    python -m tests.support.rooms_covered [DATA]

DATA is the file that `coverage run` wrote (`.coverage`). A room is a package, or a sub-package of one. Only
what ran in pytest's own process counts; lines that only Spark, Airflow or another process runs count as not
run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.support.repository import ROOT

DEPTH = 2
"""How many folders name a room."""


@dataclass(frozen=True)
class Covered:
    """The lines of code of a file or a room, and how many of them ran."""

    name: str
    lines: int
    ran: int

    @property
    def share(self) -> float:
        """The share of the lines that ran, from 0 to 1; 1 if there are no lines."""
        return self.ran / self.lines if self.lines else 1.0


def rooms(files: Iterable[Covered]) -> list[Covered]:
    """Adds up the files of each room. Returns the rooms, the least covered first. Files are named by their paths
    in the project."""
    found: dict[str, tuple[int, int]] = {}
    for file in files:
        name = "/".join(PurePosixPath(file.name).parent.parts[:DEPTH])
        lines, ran = found.get(name, (0, 0))
        found[name] = (lines + file.lines, ran + file.ran)
    summed = [Covered(name, *counts) for name, counts in found.items()]
    return sorted(summed, key=lambda room: (room.share, room.name))


def table(files: Sequence[Covered]) -> str:
    """Returns a line for each room, and one for all of them."""
    total = Covered("all", sum(file.lines for file in files), sum(file.ran for file in files))
    return "".join(
        f"{room.name:28} {room.lines:7,} lines {room.share:7.1%}\n" for room in [*rooms(files), total]
    )


def read(data: Path, *, root: Path = ROOT) -> list[Covered]:
    """Returns the files of the project that were measured, also those of which no line ran."""
    from coverage import Coverage
    from coverage.exceptions import NoSource

    measured = Coverage(data_file=str(data), config_file=str(root / "pyproject.toml"))
    measured.load()
    found = []
    for path in sorted(measured.get_data().measured_files()):
        try:
            _, lines, _, missed, _ = measured.analysis2(path)
        except NoSource:  # of a test, which has removed it
            continue
        name = Path(path).relative_to(root).as_posix()
        found.append(Covered(name, len(lines), len(lines) - len(missed)))
    return found


def main(data: Path) -> str:
    """Returns the table. Ends the program with a message if there is none."""
    files = read(data)
    if not files:
        raise SystemExit(f"{data}: nothing was measured; `make coverage` runs the tests and measures them")
    return table(files)


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".coverage")), end="")
