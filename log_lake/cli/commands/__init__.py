"""The names, texts and options of all commands: one module for each group of commands, one table of all.

These modules import no engine, so that `lake --help` answers at once.  The functions that run the commands are
in the modules of `log_lake.cli`, which `Command.run` names.
"""

from __future__ import annotations

from log_lake.cli.commands import history, looks, operation, pools, records, removal, transactions, upkeep

GROUPS = {
    "the lake and its pools": pools.COMMANDS,
    "records": records.COMMANDS,
    "a look around": looks.COMMANDS,
    "history and branches": history.COMMANDS,
    "transactions over several pools": transactions.COMMANDS,
    "upkeep": upkeep.COMMANDS,
    "removal for good": removal.COMMANDS,
    "operation and repair": operation.COMMANDS,
}
"""The commands of `lake --help` by its headings."""

COMMANDS = {command.name: command for group in GROUPS.values() for command in group}
"""Every command by its name, in the order of `lake --help`."""
