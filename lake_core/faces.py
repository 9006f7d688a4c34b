"""Packages that import a name when it is first used (PEP 562).

`import lake_core.errors` runs `lake_core/__init__.py` first.  If that file imported the engine, every DAG file and
every `lake --help` would wait for it.  So a package in front of slow modules declares the module from which
each name comes:

    if TYPE_CHECKING:  # for mypy and lint-imports
        from log_lake.lake.lake import Lake
    __getattr__ = on_demand(__name__, {"Lake": "lake"})

This does not work for a name that a submodule also has (`where.check`): importing the submodule would replace
it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def on_demand(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns a `__getattr__` for the package. It imports a name from the submodule that `modules` gives for it,
    when the name is first used."""

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
