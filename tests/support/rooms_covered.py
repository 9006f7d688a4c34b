"""How much of each room the fast tests run: a line a room, the least covered first; `make coverage`.

    python -m tests.support.rooms_covered [DATA]

DATA is what `coverage run` left (`.coverage`).  A room is a package, or a sub-package of one.  A line counts that
ran in pytest's own process; what only Spark, Airflow or another process runs is not seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.support.repository import ROOT

DEPTH = 2
"""Of folders that name a room."""


@dataclass(frozen=True)
class Covered:
    """The lines of code of a file or a room, and how many of them ran."""

    name: str
    lines: int
    ran: int

    @property
    def share(self) -> float:
        """Of the lines, 0 to 1; 1 without lines."""
        return self.ran / self.lines if self.lines else 1.0


def rooms(files: Iterable[Covered]) -> list[Covered]:
    """The files of each room added up, the least covered room first; files are named by paths in the project."""
    found: dict[str, tuple[int, int]] = {}
    for file in files:
        name = "/".join(PurePosixPath(file.name).parent.parts[:DEPTH])
        lines, ran = found.get(name, (0, 0))
        found[name] = (lines + file.lines, ran + file.ran)
    summed = [Covered(name, *counts) for name, counts in found.items()]
    return sorted(summed, key=lambda room: (room.share, room.name))


def table(files: Sequence[Covered]) -> str:
    """A line a room, and one for all of them."""
    total = Covered("all", sum(file.lines for file in files), sum(file.ran for file in files))
    return "".join(
        f"{room.name:28} {room.lines:7,} lines {room.share:7.1%}\n" for room in [*rooms(files), total]
    )


def read(data: Path, *, root: Path = ROOT) -> list[Covered]:
    """The files of the project that were measured, also those of which no line ran."""
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
    """The table, or the end of the program with a line that says why there is none."""
    files = read(data)
    if not files:
        raise SystemExit(f"{data}: nothing was measured; `make coverage` runs the tests and measures them")
    return table(files)


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".coverage")), end="")
