"""docs/deploy.md says of each service that the drills kill what a person sees: the line that the drill asserts."""

from __future__ import annotations

import pytest

from tests.containers.test_drills import DRILLS, FILES, TASK, Drill
from tests.support.repository import ROOT

PAGE = (ROOT / "docs/deploy.md").read_text()


@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.service)
def test_the_row_of_a_service_has_the_line_of_its_drill_and_what_lake_jobs_says(drill: Drill) -> None:
    _, _, rest = PAGE.partition("## When something dies")
    (row,) = [
        line for line in rest.partition("## ")[0].splitlines() if line.startswith(f"| `{drill.service}` |")
    ]
    if drill.service == "store":  # the task does not feel it: its line is that of any last try
        assert drill.place == TASK
        assert drill.said in PAGE
    else:
        assert drill.said.strip() in row
    for state in set(drill.jobs) - {"done"}:
        assert f"`lake jobs`: `{state}`" in row


def test_the_page_says_how_many_files_are_ingested_meanwhile() -> None:
    assert f"ingested {FILES} files" in PAGE
