"""The words of a condition's text, and errors that point at one.

    'text'  x'00ff'  "name"  name  12  -1.5e3  <= <> ( , ) .

Names are letters, digits and underscores, or anything between double quotes; quotes inside are doubled.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lake_core.errors import InvalidInput

LONGEST = 1 << 18
"""The most characters of a condition."""

KEYWORDS = frozenset({"and", "or", "not", "in", "is", "null", "between", "true", "false"})

_PLAIN = re.compile(r"[^\W\d]\w*")

_WORD = re.compile(
    r"""\s*(?:
      (?P<text>'[^']*(?:''[^']*)*')
    | (?P<bytes>[xX]'[^']*')
    | (?P<quoted>"[^"]*(?:""[^"]*)*")
    | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[^\W\d]\w*)
    | (?P<sign><=|>=|<>|!=|[=<>(),.])
    | (?P<end>\Z)
    | (?P<wrong>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_AROUND = 40


class Position(NamedTuple):
    """A part of the text, from its first character (inclusive) to the end of its last word (exclusive)."""

    start: int
    end: int


class Word(NamedTuple):
    """One word; `kind` is text, bytes, quoted, number, name, sign or end."""

    kind: str
    text: str
    position: Position

    @property
    def keyword(self) -> str:
        """The word in lower case if it is a bare name, otherwise ""."""
        return self.text.lower() if self.kind == "name" else ""


def words(text: str) -> list[Word]:
    """Returns all words of the text; the last one has the kind `end`.  Raises InvalidInput where the text is not a
    word."""
    if len(text) > LONGEST:
        raise InvalidInput(f"condition of {len(text):,} characters; it may have at most {LONGEST:,}")
    parsed: list[Word] = []
    at = 0
    while not parsed or parsed[-1].kind != "end":  # every turn takes at least a character
        match = _WORD.match(text, at)
        assert match is not None
        kind, at = str(match.lastgroup), match.end()
        position = Position(match.start(kind), match.end(kind))
        if kind == "wrong":
            mark = match[kind]
            fault_text = f"the closing {mark} is missing" if mark in "'\"" else "this has no meaning here"
            raise fault(text, position, fault_text)
        parsed.append(Word(kind, match[kind], position))
    return parsed


def fault(text: str, position: Position, reason: str) -> InvalidInput:
    """Returns an error whose message is one line: the condition, the column (from 1), the word, and what is wrong
    with it."""
    word = _one_line(text[position.start : position.end], _AROUND)
    at = f"at `{word}`" if word else "at the end"
    begin = max(0, position.start - _AROUND) if len(text) > 4 * _AROUND else 0
    end = position.start + 3 * _AROUND
    shown = "…" * (begin > 0) + _one_line(text[begin:end], 4 * _AROUND) + "…" * (end < len(text))
    return InvalidInput(f"condition `{shown}`, column {position.start + 1}, {at}: {reason}")


def _one_line(text: str, longest: int) -> str:
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain if len(plain) <= longest else plain[: longest - 1] + "…"


def show_name(name: str) -> str:
    """Returns a field's name in the text form, quoted if necessary; dots stay."""
    parts = name.split(".")
    if all(map(_PLAIN.fullmatch, parts)) and parts[0].lower() not in KEYWORDS:
        return name
    return quoted(name)


def quoted(name: str) -> str:
    """Returns a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'
