"""The examples of docs/python.md run one after another, as a reader types them, and print what the page shows."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest

from tests.support.documentation import examples
from tests.support.repository import ROOT

PAGE = "docs/python.md"


def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs all examples but those of Spark in a folder; returns the names that they defined."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    for example in examples(PAGE, "python"):
        printed = io.StringIO()
        code = compile("\n" * (example.line - 1) + example.code, ROOT / PAGE, "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == (example.output or ""), f"{PAGE}:{example.line}"
    return names


def test_the_examples_print_what_the_guide_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run(tmp_path, monkeypatch)
    assert {"lake", "logs", "branch", "feed", "metrics"} <= names.keys()
