"""The table of pairs in docs/simulation.md: how many seeds each two actors were run with, and what failed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.simulation.pair_actors import ACTORS
from tests.support.repository import ROOT

PAGE = ROOT / "docs" / "simulation.md"
BEGIN, END = "<!-- pairs: begin -->\n", "<!-- pairs: end -->"


@dataclass(frozen=True)
class PairCounts:
    """Seeds by pair, and those of them that failed."""

    seeds: Counter[tuple[str, str]]
    failed: Counter[tuple[str, str]]

    def cell(self, one: str, other: str) -> str:
        """`147`, or `147, 2 failed`; a pair is counted once."""
        pair = (one, other) if (one, other) in self.seeds else (other, one)
        seeds, failed = self.seeds[pair], self.failed[pair]
        return f"{seeds}, {failed} failed" if failed else str(seeds)


def table_of(counts: PairCounts) -> str:
    """The table in Markdown: below the diagonal, since a pair has no order."""
    names = list(ACTORS)
    lines = [
        f"| | {' | '.join(map(str, range(1, len(names) + 1)))} |",
        f"|---|{'---:|' * len(names)}",
    ]
    for number, one in enumerate(names, 1):
        cells = [counts.cell(one, other) for other in names[:number]] + [""] * (len(names) - number)
        lines.append(f"| {number} {one} | {' | '.join(cells)} |")
    seeds, failed = counts.seeds.total(), counts.failed.total()
    return "\n".join([*lines, "", f"{seeds:,} seeds, {failed:,} failed.\n"])


def write_table(counts: PairCounts) -> None:
    """Put the table between its marks."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{table_of(counts)}{END}{rest.partition(END)[2]}")


def names_in_page() -> list[str]:
    """The actors that the table of the page names."""
    table = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    first = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    return [name.partition(" ")[2] for name in first if name[:1].isdigit()]
