"""No module of the project is imported by a string, where lint-imports could not see it; six places may, and how.

A package that imports a name when it is first used (`faces`) states the import too, for mypy and lint-imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.unit.test_no_circles import FILES

PRODUCT = {module: path for module, path in FILES.items() if not module.startswith(("benchmarks", "local"))}

ALLOWED = {
    "lake_core.faces": "f'{package}.{modules[name]}'",  # of the package itself
    "log_lake.agents.roster": "f'log_lake.agents.{self.name}.run'",  # the one table of agents
    "log_lake.cli.command": "f'log_lake.cli.{module}'",  # of its own room: the words of a command name its module
    "log_lake.compaction.strategies": "f'{__name__}.{name}'",  # of its own folder
    "log_lake.where.own": "",  # `load` of an entry point: a filter that a package brings
    "log_lake.extras": "package",  # of others: what an extra of the wheel brings
}
"""What each of these modules imports by a string."""

CALLS = ("import_module", "__import__", "resolve_name", "exec_module", "run_module", "run_path", "load")
"""Functions that import what a string names; `load` is that of an entry point."""


def called(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield (
                (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")),
                node,
            )


def imports_importlib(tree: ast.AST) -> bool:
    names = {"importlib", "pkgutil", "runpy", "importlib.metadata", "importlib.util"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and names & {alias.name for alias in node.names}:
            return True
        if isinstance(node, ast.ImportFrom) and node.module in names:
            return True
    return False


def test_only_named_places_import_by_a_string_and_only_what_is_theirs() -> None:
    found = {}
    for module, path in PRODUCT.items():
        tree = ast.parse(path.read_text())
        for name, call in called(tree):
            if name == "__import__" or (name in CALLS and imports_importlib(tree)):
                found[module] = ast.unparse(call.args[0]) if call.args else ""
    assert found == ALLOWED


def test_a_name_on_demand_is_imported_in_text_too() -> None:
    tables = 0
    for module, path in PRODUCT.items():
        tree = ast.parse(path.read_text())
        stated = {
            (node.module, alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for name, call in called(tree):
            if name == "on_demand" and module != "lake_core.faces":
                tables += 1
                package, modules = call.args
                assert ast.unparse(package) == "__name__", module
                if module == "airflow_lake.groups":  # its groups are those of the one table of agents
                    continue
                for own, file in ast.literal_eval(modules).items():
                    assert (f"{module}.{file}", own) in stated, f"{module}: {own}"
    assert tables > 5
