"""Refuses words that readers stumble over, and names better ones: a part of `make lint`.

    python -m local.vocabulary             prints `file:line: word -> better`; fails if there is any

It reads the prose of the documentation (no code blocks, no quoted code), and the comments, texts and names of
programs.  docs/glossary.md has the words to use, CONTRIBUTING.md the rules of the sentences.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
READ = (
    "*.md",
    "docs/**/*.md",
    *(
        f"{room}/**/*.py"
        for room in ("lake_core", "log_lake", "spark_apps", "pyspark_lake", "airflow_lake", "dags", "local")
    ),
)

WORDS = {
    r"landed files?": "source file",
    r"land|lands|landed|landing": "commit (a transaction); arrive (a file)",
    r"company": "contention; other writers",
    r"(?:stands?|stood|wait(?:s|ed|ing)?) in line": "wait in the queue",
    r"whoever|(?:some|no|any|every)body": "name the actor: the writer, the reader",
    r"where there (?:is|are|was|were) (?:none|no|nothing|not)": "if there is none; None if",
    r"but for": "except",
    r"of which": "whose; or a second sentence",
    r"(?:would|could|might|must|should|will|can|may) else|[,;:.] else": "otherwise",
    r"pass(?:es|ed|ing)? by": "skip, skipped; ignore",
    r"(?:takes?|taken|taking|took) in": "load; ingest",
    r"in the place of": "instead of",
    r"for ever": "forever; or say how long",
    r"hears? (?:of|from)": "is told of",
    r"overlays?": "delta; insert_delta",
    r"the tip": "the newest state",
    r"as (?:quick|early|soon|far) as can be": "as ... as possible",
    r"so (?:many|much) times": "this many times",
}
"""For each pattern of whole words that are refused: what to write instead."""

NOUN = "the noun of what it holds: references, names, value"
NAMES = {
    "n": "version, count, index, or what it counts",
    **dict.fromkeys(("found", "known", "held", "made", "said", "did", "wanted"), NOUN),
}
"""For each refused name of a local variable or an argument: what to write instead."""

_GAP = r"(?:[ \t]+|[ \t]*\n[ \t]*)"
"""What may be between two words of a pattern: spaces or one end of a line, but no empty line."""
_WORD = re.compile(
    "|".join(
        f"(?P<w{index}>(?:(?<![\\w-])|(?=[,;:.]))(?:{pattern.replace(' ', _GAP)})(?![\\w-]))"
        for index, pattern in enumerate(WORDS)
    ),
    re.IGNORECASE,
)
_BETTER = list(WORDS.values())
_CODE = re.compile(r"```.*?^ *```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"^(?:landing|landed|lands|company|abreast|overlay)$", re.IGNORECASE)

WordFinding = tuple[int, str, str]
"""The number of a line, the refused word in it, and what to write instead."""


def in_prose(text: str) -> Iterator[WordFinding]:
    """Forbidden words of a page; code in it does not count."""
    prose = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    yield from _in_words(prose, 1)


def in_program(text: str) -> Iterator[WordFinding]:
    """Forbidden words in comments and texts of a Python program, and forbidden names."""
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            yield from _in_words(token.string, token.start[0])
        elif token.type == tokenize.NAME:
            for part in token.string.strip("_").split("_"):
                if _NAME.match(part):
                    finding = next(_in_words(part, token.start[0]), None)
                    yield finding or (token.start[0], part, "a word of docs/glossary.md")
    yield from _in_names(ast.parse(text))


def _in_names(program: ast.Module) -> Iterator[WordFinding]:
    """Yields the refused names of arguments and variables. Fields of classes keep their names, except `n`.

    Stored things and results have the names of these fields.
    """
    classes = (node for node in ast.walk(program) if isinstance(node, ast.ClassDef))
    fields = {part.target for node in classes for part in node.body if isinstance(part, ast.AnnAssign)}
    for node in ast.walk(program):
        if isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        else:
            continue
        if name in NAMES and (name == "n" or node not in fields):
            yield node.lineno, name, NAMES[name]


def findings(path: Path) -> list[WordFinding]:
    """The forbidden words of one file, in its order."""
    text = path.read_text()
    return list(in_program(text) if path.suffix == ".py" else in_prose(text))


def _in_words(text: str, line: int) -> Iterator[WordFinding]:
    for match in _WORD.finditer(text):
        if match.lastgroup:
            yield line + text.count("\n", 0, match.start()), match[0], _BETTER[int(match.lastgroup[1:])]


def main() -> int:
    files = sorted({str(path.relative_to(ROOT)) for pattern in READ for path in ROOT.glob(pattern)})
    files.remove(str(Path(__file__).relative_to(ROOT)))
    listed = [(name, *finding) for name in files for finding in findings(ROOT / name)]
    for name, line, word, better in listed:
        print(f"{name}:{line}: {' '.join(word.split())} -> {better}")
    return 1 if listed else 0


if __name__ == "__main__":
    sys.exit(main())
