"""Writes the table of settings in docs/policies.md from the list of settings.

    python -m local.policies_page

What stands outside of the two marks is written by hand and stays.  A test holds the table to the list.
"""

from __future__ import annotations

from pathlib import Path

from log_lake.policies.schema import settings_table

PAGE = Path(__file__).parents[1] / "docs/policies.md"
BEGIN = "<!-- settings: python -m local.policies_page -->\n"
END = "<!-- end of settings -->\n"


def with_table(page: str) -> str:
    """The text of the page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "".join(line + "\n" for line in settings_table())
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
