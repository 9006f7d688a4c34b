"""Opens a page whose address is a secret in the browser of the person who asked."""

from __future__ import annotations

import html
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "open.html"


@contextmanager
def opener() -> Iterator[Callable[[str], None]]:
    """Gives, for a `with` block, a function that opens an address without waiting for the browser.

    Every user of the machine can read the arguments of a process, and a browser gets its address as one.  So
    the browser gets the name of a file, which only this user can read, and which leads to the address.  The
    file is removed at the end.
    """
    with tempfile.TemporaryDirectory(prefix="lake-ui-", ignore_cleanup_errors=True) as folder:

        def open_address(address: str) -> None:
            page = Path(folder) / NAME
            page.touch(mode=0o600)  # before there is a secret in it
            page.write_text(leading_to(address), encoding="utf-8")
            # a browser in the terminal ends when the person leaves it
            threading.Thread(
                target=webbrowser.open, args=(page.as_uri(),), name="lake-browser", daemon=True
            ).start()

        yield open_address


def leading_to(address: str) -> str:
    """Returns an HTML page that leads a browser to the address."""
    shown = html.escape(address)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0; url={shown}"><title>Lake</title>'
        f'<p><a href="{shown}">Open the lake</a></p></html>\n'
    )
