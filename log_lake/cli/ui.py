"""ui: the pages of the web view on this machine, without Airflow."""

from __future__ import annotations

import contextlib
import webbrowser
from argparse import Namespace

from lake_core.extras import need
from log_lake.console.output import print_json, say
from log_lake.console.sink import flush


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
        if args.open:
            webbrowser.open(address)

    with bound(args.port) as listening, contextlib.suppress(KeyboardInterrupt):  # the way to end it
        serve(args.lake, listening=listening, told=told)
