"""The rule of clusters, `FIELD:N`, as the setting `cluster.by` has it.

`lake --help` reads this module, so it must not import Arrow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST = 256
"""The most buckets of a rule: a lookup by key opens an object of each, and a load writes one of each."""

FORM = r"((?:.|\n)+):([0-9]{1,3})"
"""What the text of a rule matches."""


@dataclass(frozen=True)
class ClusterRule:
    """Records lie by the hash of `field`, written as in a condition without quotes, in `of` buckets.

    Fewer than `least` bytes for each bucket are not divided.
    """

    field: str
    of: int
    least: int = 1 << 20

    def divides(self, size: int) -> bool:
        """Whether records of this many bytes are divided by bucket."""
        return size >= self.least * self.of

    def __str__(self) -> str:
        return f"{self.field}:{self.of}"


def depths_of(rule: ClusterRule | None) -> int:
    """Returns how many times `compact.depth` a pool may be deep: for each bucket, and beside them."""
    return 1 if rule is None else rule.of + 1


def cluster_rule(text: str) -> ClusterRule | None:
    """Returns the rule in this text; None if it is empty.  Raises ValueError."""
    if not text:
        return None
    match = re.fullmatch(FORM, text.strip())
    if match is None or not match[1].strip() or not 2 <= int(match[2]) <= MOST:
        raise ValueError(f"use FIELD:N, such as user:16, with 2 to {MOST} objects (inclusive)")
    return ClusterRule(match[1].strip(), int(match[2]))
