"""The names and options of each command: one module for each group of commands, one table of all.

These modules import no engine, so that `lake --help` answers at once; what carries a command out is in the modules
of `log_lake.cli`, which `Command.run` names.
"""

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
"""Every command by its name, in the order of `lake --help`."""
