"""What theory promises of each strategy, to be held against what was seen.

With n loads of sizes s, T bytes of them in all, ratio r, and at most K references on a key:

    size_ratio   a byte that is rewritten becomes part of a run r times as large as the one it was in, so a byte of
                 a load of size s is rewritten at most log(T / s) / log(r) times:
                 write <= 1 + sum(s / T * log_r(T / s)).
    depth        no strategy that leaves at most K runs after each of n looks writes less than the binomial one:
                 C(K + i - 1, i) of what n looks found are rewritten i times, for i = 0, 1, ...  This is a floor;
                 what does not overlap everywhere may stay below it.
    time_window  as size_ratio within what is open (three windows at most: a window closes when another has passed),
                 and once more when the window has closed.  Stragglers come on top.
    full         what overlaps is rewritten at each look: looks are f bytes apart, so write <= 1 + (T / f + 1) / 2.

The depth is at most K, and what lands between two looks, for all but full, which leaves 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from log_lake.compaction import CompactionPolicy


def size_ratio_most(sizes: Sequence[int], *, ratio: float) -> float:
    """Bytes written for each byte loaded, at most."""
    total = sum(sizes)
    return 1 + sum(s / total * math.log(total / s, ratio) for s in sizes)


def depth_least(looks: int, *, depth: int) -> float:
    """Bytes written for each byte loaded, at least, where all overlaps and each look finds as much."""
    left, rewritten = looks, 0
    for i in range(looks):
        here = min(left, math.comb(depth + i - 1, i))
        rewritten += here * i
        left -= here
        if not left:
            break
    return 1 + rewritten / looks


def window_most(sizes: Sequence[int], *, policy: CompactionPolicy, seconds: float) -> float:
    """Bytes written for each byte loaded, at most, stragglers left aside; `seconds` is how long the loads took."""
    open_bytes = sum(sizes) * min(1.0, 3 * policy.window / seconds)
    mean = sum(sizes) / len(sizes)
    return 2 + max(0.0, math.log(open_bytes / mean, policy.ratio))


def full_most(*, looks: int) -> float:
    """Bytes written for each byte loaded, at most, where loads come evenly."""
    return 1 + (looks + 1) / 2
