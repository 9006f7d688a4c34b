"""ui: the pages of the web view on this machine, without Airflow."""

from __future__ import annotations

import contextlib
import signal
from argparse import Namespace
from collections.abc import Iterator

from log_lake.cli.browser import opener
from log_lake.console.output import print_json, say
from log_lake.console.sink import flush
from log_lake.extras import need


def ui(args: Namespace) -> None:
    """Serve the web view on the loopback address until the process is interrupted."""
    need("ui", "lake ui")
    from log_lake.view.serving import bound, serve

    def told(address: str) -> None:
        if args.json:
            print_json({"address": address})
            flush()  # the program that started it waits for this line
        else:
            say(f"the web view of this lake: {address}")
            say("only you know the address; the view changes nothing; Ctrl-C ends it")

    with (
        bound(args.port) as listening,
        opener() as open_address,
        _ended_by_signal(),
        contextlib.suppress(KeyboardInterrupt),  # the way to end it
    ):
        serve(
            args.lake,
            listening=listening,
            told=told,
            started=open_address if args.open else lambda _: None,
        )


@contextlib.contextmanager
def _ended_by_signal() -> Iterator[None]:
    """SIGTERM ends the command as Ctrl-C does, so that it removes its files."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
