"""Writes the table of settings in docs/policies.md from the list of settings.

    python -m local.policies_page

It replaces only the text between its two marks.  A test compares the table with the list.
"""

from __future__ import annotations

from pathlib import Path

from log_lake.policies.schema import settings_table

PAGE = Path(__file__).parents[1] / "docs/policies.md"
BEGIN = "<!-- settings: python -m local.policies_page -->\n"
END = "<!-- end of settings -->\n"


def with_table(page: str) -> str:
    """The text of the page with the current table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "".join(line + "\n" for line in settings_table())
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
