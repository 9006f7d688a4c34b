"""Every name of the page on stored bytes belongs to a kind that `make fuzz` changes."""

from __future__ import annotations

import re
from pathlib import PurePath

import pytest

from tests.support.repository import ROOT
from tests.support.stored_kinds import KINDS

POOL, ID = "p" * 27, "i" * 27
PARTS = {
    "<pool-id>": POOL,
    "<id>": ID,
    "<n>": f"{5:020d}",
    "<k>": f"{1:020d}",
    "<id8>": f"{5:08d}",
    "<digest>": "0" * 32,
    "<nn>": "00",
    "<agent>": "compact",
    "<way>": "0" * 32,
}
OF_ICEBERG = "<pool-id>/published/iceberg/<branch>/..."
"""Files of another format: `tests/unit/publish/test_damaged_tables.py` changes them, with the same count."""


def names() -> list[str]:
    """The names of the page's first table."""
    table = (ROOT / "docs/format.md").read_text().partition("## Names")[2].partition("\n\n`<n>`")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    found = [name for cell in cells for name in _whole(re.findall("`([^`]+)`", cell))]
    assert len(found) > 15, "the table is read"
    return [name for name in found if name != OF_ICEBERG]


def _whole(names: list[str]) -> list[str]:
    """The names of a cell; one that begins with a dot has the beginning of the first."""
    return [names[0].rpartition(".")[0] + name if name.startswith(".") else name for name in names]


@pytest.mark.parametrize("name", names())
def test_each_stored_thing_is_changed_by_a_kind(name: str) -> None:
    journals = (f"{POOL}/journal", "pools") if "<journal>" in name else ("",)
    for journal in journals:
        spelled = name.replace("<journal>", journal)
        for part, value in PARTS.items():
            spelled = spelled.replace(part, value)
        fitting = [kind for kind, of in KINDS.items() if PurePath(spelled).match(of.pattern.format(a=POOL))]
        assert fitting or _is_request_of_the_list(spelled), f"{spelled}: no kind changes it"


def _is_request_of_the_list(name: str) -> bool:
    """The list of pools has no requests: its writers try alone."""
    return name.startswith("pools/requests/")
