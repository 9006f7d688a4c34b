"""docs/troubleshooting.md has a section for each error class, in order, and says what Airflow does with it."""

from __future__ import annotations

import re

import pytest

from lake_core import errors
from lake_core.errors import LakeError, kinds
from tests.support.repository import ROOT

PAGE = (ROOT / "docs/troubleshooting.md").read_text()
SECTIONS = {
    part.partition("\n")[0]: part.partition("\n")[2].strip()
    for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
}
KINDS = list(kinds(LakeError))


def test_each_error_class_has_a_section_in_the_order_of_the_tree() -> None:
    assert [title for title in SECTIONS if " " not in title] == [kind.__name__ for kind in KINDS]


def test_the_tree_that_the_module_shows_is_that_of_the_classes() -> None:
    shown = re.findall(r"^ +([A-Z]\w+) {2,}\S", errors.__doc__ or "", re.MULTILINE)
    assert shown == [kind.__name__ for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_section_says_what_airflow_does_and_what_to_do(kind: type[LakeError]) -> None:
    first, _, rest = SECTIONS[kind.__name__].partition("\n")
    fails = kind is not LakeError and not kind.may_pass
    assert first == f"Airflow: {'fails at once' if fails else 'tried again'}."
    assert len(rest.strip()) > 80
