"""Tests pass limits of their own: none patches a constant of a module, so that no test depends on another's."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.support.repository import ROOT

PATCHES = {"setattr", "object", "patch"}


def is_constant(name: str) -> bool:
    return name.rpartition(".")[2].strip("_").isupper()


def patched(source: str) -> Iterator[tuple[int, str]]:
    """Lines and names of constants that the source replaces in a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign):
            attributes = [target for target in node.targets if isinstance(target, ast.Attribute)]
            yield from ((node.lineno, target.attr) for target in attributes if is_constant(target.attr))
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            words = [arg.value for arg in node.args[:2] if isinstance(arg, ast.Constant)]
            if name in PATCHES:
                yield from ((node.lineno, w) for w in words if isinstance(w, str) and is_constant(w))


def test_no_constant_of_a_module_is_patched() -> None:
    files = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    assert [f"{path}:{line}: {name}" for path in files for line, name in patched(path.read_text())] == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('monkeypatch.setattr(module, "LIMIT", 1)', ["LIMIT"]),
        ('monkeypatch.setattr("a.module.LIMIT", 1)', ["a.module.LIMIT"]),
        ('patch.object(module, "_LIMIT", 1)', ["_LIMIT"]),
        ("module.LIMIT = 1", ["LIMIT"]),
        ("LIMIT = 1", []),
        ('monkeypatch.setattr(os, "fsync", fail)', []),
    ],
)
def test_a_patch_of_a_constant_is_found_however_it_is_written(line: str, found: list[str]) -> None:
    assert [name for _, name in patched(line)] == found
