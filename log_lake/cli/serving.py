"""serve: an Iceberg REST catalog, queries and loads over lakes, for other programs."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from collections.abc import Mapping
from functools import partial

from lake_core.errors import InvalidInput, Unavailable
from log_lake.cli.interrupting import ended_by_signal
from log_lake.console.output import print_json, say
from log_lake.console.sink import flush
from log_lake.extras import need
from log_lake.lake import Lake

NAMESPACE = "lake"
"""The namespace of the lake that `--lake` names."""


def serve(args: Namespace) -> None:
    """Serve the catalog until the process is interrupted."""
    need("serve", "lake serve")
    from log_lake.iceberg_catalog.callers import callers_in
    from log_lake.iceberg_catalog.serving import address_of, bound
    from log_lake.iceberg_catalog.serving import serve as serve_lakes
    from log_lake.service.app import ServiceApp
    from log_lake.service.limits import ServiceLimits

    lakes = lakes_of(args.lake, args.also)
    _check_lakes(lakes)
    callers = () if args.token_file is None else callers_in(args.token_file)
    bounds = ServiceLimits(
        seconds=args.max_seconds,
        rows=args.max_rows,
        answer=args.max_answer,
        body=args.max_body,
        memory=args.memory,
    )
    may_write = not args.read_only
    with (
        bound(args.host, args.port, has_token=bool(callers)) as listening,
        ended_by_signal(),
        contextlib.suppress(KeyboardInterrupt),  # the way to end it
    ):
        address = address_of(listening)

        def started() -> None:
            if args.json:
                print_json({"address": address, "namespaces": list(lakes)})
                flush()  # the program that started it waits for this line
            else:
                say(f"the Iceberg catalog of {', '.join(lakes)}: {address}")
                say(
                    f"queries and loads: {address}/docs; clients of the catalog read the objects with their own "
                    "credentials; Ctrl-C ends it"
                )
                flush()

        serve_lakes(
            lakes,
            listening=listening,
            callers=callers,
            may_write=may_write,
            started=started,
            around=partial(ServiceApp, bounds=bounds, may_write=may_write),
        )


def lakes_of(lake: str, also: list[str]) -> Mapping[str, str]:
    """Returns the addresses of the lakes by namespace.  Raises InvalidInput."""
    lakes = {NAMESPACE: lake} if lake else {}
    for word in also:
        name, equals, address = word.partition("=")
        if not equals or not address or not _may_name(name) or name in lakes:
            raise InvalidInput(
                f"--also {word!r}: write NAME=URI; a name has letters, digits, _ and -, and each is given once"
            )
        lakes[name] = address
    if not lakes:
        raise InvalidInput("no lake is named; use --lake URI, set LAKE, or use --also NAME=URI")
    return lakes


def _check_lakes(lakes: Mapping[str, str]) -> None:
    """Raises NotFound if an address has no lake.  A store that does not answer now may answer the clients later."""
    for address in lakes.values():
        with contextlib.suppress(Unavailable):
            Lake.open(address)


def _may_name(name: str) -> bool:
    return (
        bool(name) and len(name) <= 64 and name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    )
