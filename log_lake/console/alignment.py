"""Aligned text for people: the lines of a table, cut to the width of a terminal; pure.

A pipe or a file gets every column whole.  For a terminal, the widest columns are cut first, to `NARROWEST`
letters at least.  If that is not enough, columns on the right are left out, and the caller names them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lake_core.phrases import printable

GAP = "  "
NARROWEST = 12
"""Letters that a cut column keeps at least; after that, whole columns are left out."""


def fit(widths: Sequence[int], total: int, *, whole: Collection[int] = ()) -> list[int]:
    """Returns the widths of the columns, cut so that a line has at most `total` letters.  If the last columns do
    not fit even so, the result has fewer widths.

    Columns in `whole`, by their numbers, are never cut.
    """
    kept = list(widths)
    least = [width if index in whole else min(width, NARROWEST) for index, width in enumerate(widths)]
    while len(kept) > 1 and _line(least[: len(kept)]) > total:
        kept.pop()
    over = _line(kept) - total
    while over > 0:  # bounded: every round cuts the widest columns to the next width, or ends
        may_be_cut = [width for index, width in enumerate(kept) if index not in whole]
        widest = max(may_be_cut, default=0)
        if widest <= NARROWEST:
            break
        columns = [index for index, width in enumerate(kept) if width == widest and index not in whole]
        next_width = max([width for width in may_be_cut if width < widest], default=0)
        cut = min(widest - max(next_width, NARROWEST), max(1, over // len(columns)))
        for index in columns:
            kept[index] -= cut
        over = _line(kept) - total
    return kept


def _line(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def cut(text: str, width: int) -> str:
    """Returns the text; if it is longer than `width`, its beginning and a mark."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def aligned(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[bool],
    total: int | None,
    whole: Collection[int] = (),
) -> tuple[list[str], list[str]]:
    """Returns the lines of a table, its names first, and the names of the columns that did not fit into `total`
    letters.

    `right`: the columns that are aligned to the right.  `total` None: no limit.  `whole`: columns that are not
    cut.
    """
    names = [printable(name) for name in names]
    rows = [[printable(text) for text in row] for row in rows]
    widths = [max(len(name), *(len(row[index]) for row in rows)) for index, name in enumerate(names)]
    kept = widths if total is None else fit(widths, total, whole=whole)
    lines = []
    for row in (names, *rows):
        cells = (cut(text, width) for text, width in zip(row, kept, strict=False))
        padded = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(cells, kept, right, strict=False)
        ]
        lines.append(GAP.join(padded).rstrip())
    return lines, list(names[len(kept) :])
