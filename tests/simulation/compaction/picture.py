"""The outcomes as one SVG: depth and bytes written by week, a column for each load, a line for each strategy.

Written by hand: a few dozen lines of text, so that no library for drawing is installed for one picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.simulation.compaction.report import MEASURES, STRATEGIES, Outcome

WIDTH, HEIGHT, GAP, TOP = 240, 150, 44, 60
TITLES = {
    "depth": "references at a byte, mean of the week",
    "written": "bytes written for each byte loaded, so far",
}


def svg(outcomes: Sequence[Outcome]) -> str:
    """The picture, as the text of a file."""
    loads = list(dict.fromkeys(outcome.load for outcome in outcomes))
    width = GAP + len(loads) * (WIDTH + GAP)
    height = TOP + len(TITLES) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for n, (strategy, colour) in enumerate(STRATEGIES.items()):
        parts.append(f'<text x="{GAP + 110 * n}" y="18" fill="{colour}" font-weight="bold">{strategy}</text>')
    for row, (what, title) in enumerate(TITLES.items()):
        for column, load in enumerate(loads):
            shown = {o.strategy: o.weeks(MEASURES[what]) for o in outcomes if o.load == load}
            x, y = GAP + column * (WIDTH + GAP), TOP + row * (HEIGHT + GAP)
            parts.append(f'<g transform="translate({x},{y})">')
            parts.append(f'<text x="0" y="-8">{load}: {title}</text>')
            parts.extend(_panel(shown))
            parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _panel(shown: dict[str, list[float]]) -> Iterator[str]:
    """Axes from nothing up, and a line for each strategy, cut at twice what the others reach."""
    tops = sorted(max(values) for values in shown.values())
    top = min(tops[-1], 2 * tops[-2]) if len(tops) > 1 else tops[-1]
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#bbb"/>'
    for part in (0.0, 0.5, 1.0):
        y = HEIGHT * (1 - part)
        yield f'<text x="-5" y="{y + 4:.0f}" text-anchor="end">{top * part:.1f}</text>'
        yield f'<line x1="0" x2="{WIDTH}" y1="{y:.0f}" y2="{y:.0f}" stroke="#eee"/>'
    weeks = max(len(values) for values in shown.values())
    for week in range(0, weeks, 2):
        yield f'<text x="{_x(week, weeks):.0f}" y="{HEIGHT + 14}" text-anchor="middle">week {week + 1}</text>'
    for strategy, values in shown.items():
        points = [(_x(n, weeks), HEIGHT * (1 - min(value, top) / top)) for n, value in enumerate(values)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield f'<polyline points="{path}" fill="none" stroke="{STRATEGIES[strategy]}" stroke-width="2"/>'


def _x(week: int, weeks: int) -> float:
    return WIDTH * (week + 0.5) / weeks
