"""The table of all commands; its order is that of `lake --help`."""

from __future__ import annotations

from log_lake.cli.commands import history, operation, pools, records, removal, upkeep

GROUPS = {
    "pools": pools.COMMANDS,
    "records": records.COMMANDS,
    "history": history.COMMANDS,
    "upkeep": upkeep.COMMANDS,
    "removal": removal.COMMANDS,
    "operation": operation.COMMANDS,
}

COMMANDS = {command.name: command for group in GROUPS.values() for command in group}
"""Every command by its name."""
