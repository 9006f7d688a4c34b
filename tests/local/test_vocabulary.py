"""The words that `make lint` refuses, and where it looks for them."""

from __future__ import annotations

import pytest

from local.vocabulary import NAMES, READ, ROOT, WORDS, in_program, in_prose, main


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("When a landed file is read", "landed file"),
        ("the transaction lands first", "lands"),
        ("Whoever writes looks", "Whoever"),
        ("an object that nobody refers to", "nobody"),
        ("None where there is none.", "where there is none"),
        ("all lose the race, but for one", "but for"),
        ("a key range of which a condition holds", "of which"),
        ("it would else never hear", "would else"),
        ("sorted by key; else by arrival", "; else"),
        ("a pool of many, where\nthere are none", "where\nthere are none"),
    ],
)
def test_a_word_is_found_in_prose(text: str, word: str) -> None:
    assert [found for _, found, _ in in_prose(text)] == [word]


@pytest.mark.parametrize(
    "text",
    [
        "Otherwise the island is passed on; or else it stays",
        "a `landing` folder",
        "```\nls landing\n```\n",
        "what a store takes\n\nIn a paragraph of its own",
        "the landlord's highland company-wide? no: companies",
    ],
)
def test_other_words_and_quoted_code_are_not_found(text: str) -> None:
    assert list(in_prose(text)) == []


def test_lines_are_counted_from_the_first_of_the_file() -> None:
    assert [line for line, _, _ in in_prose("one\n\n```\ncode\n```\nwhoever\n")] == [6]
    assert [line for line, _, _ in in_program('"""First.\n\nWhoever calls.\n"""\n# landed\n')] == [3, 5]


def test_comments_texts_and_names_of_a_program_are_read_and_its_keywords_are_not() -> None:
    program = 'def is_landed(n: int) -> str:\n    return "landed" if n else f"{n} but for one"  # whoever\n'
    found = {(line, word) for line, word, _ in in_program(program)}
    assert found == {(1, "landed"), (1, "n"), (2, "landed"), (2, "but for"), (2, "whoever")}


@pytest.mark.parametrize(
    "program",
    [
        "found = look()",
        "found: list[int] = []",
        "first, (found, last) = pair",
        "found += [1]",
        "for found in looked: pass",
        "if found := look(): pass",
        "with look() as found: pass",
        "def look(found): pass",
        "def look(*found): pass",
        "def look(*, found=1): pass",
        "async def look(found): pass",
        "look(lambda found: 1)",
        "look([1 for found in looked])",
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_a_variable_or_an_argument_without_a_noun_is_found(program: str, name: str) -> None:
    assert list(in_program(program.replace("found", name))) == [(1, name, NAMES[name])]


@pytest.mark.parametrize("name", NAMES.keys() - {"n"})
def test_fields_functions_attributes_and_uses_keep_the_name(name: str) -> None:
    program = (
        f"class Plan:\n    {name}: int\n    def {name}(self): self.{name} = {name}\nlook({name}={name})\n"
    )
    assert list(in_program(program)) == []


def test_a_field_n_is_found() -> None:
    assert [(line, word) for line, word, _ in in_program("class Plan:\n    n: int\n")] == [(2, "n")]


def test_every_finding_names_a_better_word() -> None:
    assert all(WORDS.values())
    assert all(NAMES.values())
    assert {better for _, _, better in in_prose("whoever landed")} == {
        "name the actor: the writer, the reader",
        "commit (a transaction); arrive (a file)",
    }


def test_no_file_has_a_forbidden_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert (main(), capsys.readouterr().out) == (0, "")


def test_the_documentation_the_packages_and_the_tools_are_read() -> None:
    read = {str(path.relative_to(ROOT)) for pattern in READ for path in ROOT.glob(pattern)}
    assert {"README.md", "docs/glossary.md", "docs/decisions/README.md"} <= read
    assert {"lake_core/errors.py", "spark_apps/load.py", "dags/ingest.py", "local/demo.py"} <= read
