"""ui: the pages of the web view on this machine, without Airflow."""

from __future__ import annotations

import contextlib
from argparse import Namespace

from log_lake.cli.browser import opener
from log_lake.cli.interrupting import ended_by_signal
from log_lake.console.output import print_json, say
from log_lake.console.sink import flush
from log_lake.extras import need


def ui(args: Namespace) -> None:
    """Serve the web view on the loopback address until the process is interrupted."""
    need("ui", "lake ui")
    from log_lake.view.listening import listen
    from log_lake.view.serving import serve

    def told(address: str) -> None:
        if args.json:
            print_json({"address": address})
            flush()  # the program that started it waits for this line
        else:
            say(f"the web view of this lake: {address}")
            say("only you know the address; the view changes nothing; Ctrl-C ends it")

    with (
        listen(args.port) as listening,
        opener() as open_address,
        ended_by_signal(),
        contextlib.suppress(KeyboardInterrupt),  # the way to end it
    ):
        serve(
            args.lake,
            listening=listening,
            told=told,
            started=open_address if args.open else lambda _: None,
        )
