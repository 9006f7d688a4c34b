"""What the tests of the page share: what they wait for, and pictures for the documentation."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

WITHIN_MS = 600_000
"""How long the browser waits for what a test expects to see."""

Open = Callable[..., Any]


def picture(page: Any, name: str) -> None:
    folder = os.environ.get("LAKE_VIEW_PICTURES")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def background(page: Any) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def shows(page: Any, where: str, text: str) -> None:
    """Waits until the element shows the text; the policy of the page forbids what `wait_for_function` does."""
    page.locator(where, has_text=text).wait_for()


def colours(page: Any) -> int:
    """How many colours the canvas shows."""
    return int(
        page.evaluate(
            """() => {
              const canvas = document.getElementById("geometry");
              const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
              return new Set(new Uint32Array(data.buffer)).size;
            }"""
        )
    )
