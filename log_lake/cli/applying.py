"""Commands about the policy file: apply, export."""

from __future__ import annotations

from argparse import Namespace

from lake_core.errors import InvalidInput
from lake_core.naming import OWN_POOLS
from log_lake.cli.opening import open_lake
from log_lake.cli.pools import confirm
from log_lake.console.output import print_json, say
from log_lake.console.sink import print_text, sink
from log_lake.policies.apply import carry_out, read_text
from log_lake.policies.difference import Difference, compare
from log_lake.policies.export import export
from log_lake.policies.file import parse
from log_lake.policies.limits import POLICY_LIMITS
from log_lake.policies.nodes import Fault
from log_lake.policies.schema import json_schema
from log_lake.policies.text import (
    difference_lines,
    difference_values,
    fault_lines,
    refusal,
    removal_question,
)


def apply(args: Namespace) -> None:
    """Make the lake's pools as the file says; print the difference first."""
    if args.schema:
        print_json(json_schema(), indented=True)
        return
    if args.file is None:
        raise InvalidInput("apply: name a policy file, - for standard input, or --schema")
    file, faults = parse(read_text(args.file))
    _check(args, faults)
    lake = open_lake(args)
    difference, faults = compare(file, lake.catalog.load().state, prune=args.prune)
    _check(args, faults)
    if not args.json:
        _print_lines(difference)
    if args.dry_run or difference.is_empty:
        if args.json:
            print_json({**difference_values(difference), "applied": False, "version": None})
        return
    if difference.removes:
        confirm(args, removal_question(difference))
    applied = carry_out(lake, difference)
    if args.json:
        print_json({**difference_values(difference), "applied": True, "version": applied.version})
    else:
        say(f"applied {args.file}; the list of pools has version {applied.version:,}")


def _print_lines(difference: Difference) -> None:
    print_text("".join(line + "\n" for line in difference_lines(difference)))


def _check(args: Namespace, faults: list[Fault]) -> None:
    """Raises InvalidInput if there are faults; if there are several, they are printed first, a line each."""
    if not faults:
        return
    if args.json:
        for fault in faults[: POLICY_LIMITS.max_faults]:
            print_json({"file": args.file, **fault.place._asdict(), "message": fault.message})
    elif len(faults) > 1:
        print_text("".join(line + "\n" for line in fault_lines(args.file, faults)))
    raise refusal(args.file, faults)


def export_pools(args: Namespace) -> None:
    """Write pools as a policy file."""
    lake = open_lake(args)
    state = lake.catalog.load().state
    names = set(args.pools) or {*state.names} - {*OWN_POOLS}
    for name in sorted(names & {*OWN_POOLS}):
        raise InvalidInput(f"pool {name!r}: the lake makes this pool itself, so no policy file names it")
    text = export([state.named(name) for name in sorted(names)])
    with sink(args.output) as output:
        output.write(text.encode())
