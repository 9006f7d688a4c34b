"""Keeps pandas out of the process of the command; called by `main`.

Arrow imports pandas, if it is installed, at the first value that it takes from Python: 300 modules, a quarter of
the processor time of a `lake get`.  No command needs pandas.  A process that imports `main` keeps it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType


class _NoPandas:
    """Finds no module called pandas; `sys.meta_path` asks it first."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"the lake command runs without {name}", name=name)


def leave_pandas_out() -> None:
    """From now on `import pandas` fails as if it were not installed."""
    sys.meta_path.insert(0, _NoPandas())
