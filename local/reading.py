"""Measures how hard the documentation is to read: a part of `make lint`.

    python -m local.reading            a line for each page that is too hard, and the totals
    python -m local.reading --all      a line for each page, and each long sentence

A sentence has at most `LONGEST` words; on each page at most `SHARE` of the sentences are longer.  The reading
ease of a page is that of Flesch (textstat): 60 is plain English, 30 is for lawyers.  Code blocks, tables,
headings and the addresses of links are left out.  Code within a sentence counts as one word, and so does a list
of such code.  The end of a list item and a colon end a sentence.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import textstat

ROOT = Path(__file__).parents[1]
PAGES = ("*.md", "docs/*.md")
LEFT_OUT = {"CHANGELOG.md"}
"""Pages that are not measured: a changelog is a list to look things up, not a text to read."""

LONGEST = 25
"""The most words of a sentence (docs/glossary.md)."""

SHARE = 0.03
"""The share of a page's sentences that may be longer."""

EASE = 60.0
"""The least reading ease of a page."""

_NOT_PROSE = re.compile(
    r"```.*?^ *```|^<!--.*?-->|^ *\|.*?$|^#.*?$|^ {4,}(?![-*\d]).*?$", re.DOTALL | re.MULTILINE
)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`]*`(?:(?:,| and| or|, and|, or) `[^`]*`)*")
_BLOCKS = re.compile(r"\n\s*\n|^\s*(?:[-*]|\d+\.) ", re.MULTILINE)
_SENTENCES = re.compile(r"(?<=[.!?])[)\"']?\s+(?=[\"'(]?[A-Z]|code\b)|(?<=[:;])\s")
_WORD = re.compile(r"[^\W_][\w'.,/-]*")


@dataclass(frozen=True)
class Page:
    """The sentences of a page, and its reading ease."""

    name: str
    sentences: tuple[str, ...]
    ease: float

    @property
    def long(self) -> list[str]:
        """Sentences of more than `LONGEST` words."""
        return [one for one in self.sentences if len(_WORD.findall(one)) > LONGEST]

    @property
    def is_hard(self) -> bool:
        """Whether the page has more than one long sentence and too great a share of them, or too low a
        reading ease."""
        return len(self.long) > max(1, SHARE * len(self.sentences)) or self.ease < EASE

    def __str__(self) -> str:
        share = len(self.long) / max(1, len(self.sentences))
        return (
            f"{self.name}: {len(self.sentences)} sentences, {share:.1%} of more than {LONGEST} words, "
            f"reading ease {self.ease:.0f}"
        )


def page(name: str, text: str) -> Page:
    """The sentences and the reading ease of a page in Markdown."""
    prose = _CODE.sub("code", _LINK.sub(r"\1", _NOT_PROSE.sub("\n", text)))
    prose = re.sub(r"[*_>]", "", prose)
    blocks = (" ".join(block.split()) for block in _BLOCKS.split(prose))
    sentences = tuple(one for block in blocks for one in _SENTENCES.split(block) if _WORD.search(one))
    ease = textstat.flesch_reading_ease(" ".join(f"{one.rstrip('.:;')}." for one in sentences))
    return Page(name, sentences, float(ease))


def pages() -> list[Page]:
    """All measured pages, in the order of their names."""
    paths = sorted(path for pattern in PAGES for path in ROOT.glob(pattern) if path.name not in LEFT_OUT)
    return [page(str(path.relative_to(ROOT)), path.read_text()) for path in paths]


def main(words: Sequence[str]) -> int:
    """Prints the pages that are too hard; the status is 1 if there is one."""
    everything = "--all" in words
    every_page = pages()
    hard = [one for one in every_page if one.is_hard]
    for one in every_page if everything else hard:
        print(one)
        for sentence in one.long:
            print(f"    {sentence}")
    total = sum(len(one.sentences) for one in every_page)
    long = sum(len(one.long) for one in every_page)
    ease = sum(one.ease * len(one.sentences) for one in every_page) / total
    print(
        f"{len(every_page)} pages: {total:,} sentences, {long / total:.1%} of more than {LONGEST} words, "
        f"mean reading ease {ease:.0f}"
    )
    return 1 if hard else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
