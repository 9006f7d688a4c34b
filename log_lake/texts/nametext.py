"""Names of fields as one text: `A,B`, or a JSON list of them if a name has a comma.

The command's options and Spark's take a list in this form.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from lake_core.errors import InvalidInput


def names_of(text: str, *, option: str) -> list[str]:
    """Returns the names in the text.  Raises InvalidInput if a name is empty or occurs twice; `option` names the
    option in it."""
    names = _listed(text) or text.split(",")
    for name in names:
        if not name or names.count(name) > 1:
            fault = "a name is empty" if not name else f"column {name!r} is named twice"
            raise InvalidInput(f"{option}={text}: {fault}; name each column once, as A,B or as a JSON list")
    return names


def text_of(names: Sequence[str]) -> str:
    """Returns the names as text that `names_of` reads back."""
    plain = ",".join(names)
    return plain if plain.split(",") == list(names) and not plain.startswith("[") else json.dumps(names)


def _listed(text: str) -> list[str]:
    """Returns the names in a JSON list; an empty list if the text is not such a list."""
    if not text.startswith("["):
        return []
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []
