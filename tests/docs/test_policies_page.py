"""docs/policies.md: its table is the list of settings, its example can be applied, its messages are real."""

from __future__ import annotations

import re

from local.policies_page import PAGE, with_table
from log_lake.policies.file import parse
from log_lake.policies.text import fault_lines
from log_lake.settings.settings import KNOWN

TEXT = PAGE.read_text()
(EXAMPLE,) = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
FAULTS = re.findall(r"^pools\.yaml:.*$", TEXT, re.MULTILINE)


def test_the_table_is_that_of_the_list_of_settings() -> None:
    assert with_table(TEXT) == TEXT, "write it anew: python -m local.policies_page"
    rows = re.findall(r"^\| `([a-z_.]+)` \|", TEXT, re.MULTILINE)
    assert rows == list(KNOWN)


def test_the_example_can_be_applied() -> None:
    file, faults = parse(EXAMPLE)
    assert faults == []
    assert list(file.pools) == ["flights", "traffic"]
    assert file.pools["flights"].settings["history.keep"] == "90d"
    assert "history.keep" not in file.pools["traffic"].settings


def test_the_faults_that_the_page_shows_are_those_of_apply() -> None:
    broken = EXAMPLE.replace("kind: upsert", "kind: update").replace("compact.depth", "compact.dept")
    assert list(fault_lines("pools.yaml", parse(broken)[1])) == FAULTS
