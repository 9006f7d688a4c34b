"""A class, or another name of a type, is defined in one module of the product: its name says which it is."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.unit.test_no_circles import FILES

TYPING = ("TypeVar", "ParamSpec")
"""Parameters of types are no types."""


def defined(path: Path) -> set[str]:
    """The public names of classes and types that the module defines at its top."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif (
            isinstance(node, ast.Assign)
            and isinstance(name := node.targets[0], ast.Name)
            and name.id[0].isupper()
            and not name.id.isupper()
            and not (isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in TYPING)
        ):
            names.add(name.id)
    return {name for name in names if not name.startswith("_")}


def test_no_type_has_the_name_of_another() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module, path in FILES.items():
        if not module.startswith("benchmarks"):
            for name in defined(path):
                homes[name].append(module)
    assert len(homes) > 500
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}
