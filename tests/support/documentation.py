"""Reads the examples of the documentation: the fenced blocks of a page.

A block ```` ```text ```` shows what the block before it prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.repository import ROOT

_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A block of code, the line where it begins, and the text that it must print; None if the page shows none."""

    words: tuple[str, ...]
    line: int
    code: str
    output: str | None


def examples(page: str, *words: str) -> Iterator[Example]:
    """The blocks of a page (its path in the repository) that are marked with exactly these words."""
    text = (ROOT / page).read_text()
    blocks = list(_FENCED.finditer(text))
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if tuple(block[1].split()) != words:
            continue
        shown = after[2] if after is not None and after[1] == "text" else None
        yield Example(words, text[: block.start()].count("\n") + 2, block[2], shown)
