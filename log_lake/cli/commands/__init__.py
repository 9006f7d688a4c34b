"""What each command is called and takes: one module a group of commands, one table of all.

These modules import no engine, so that `lake --help` answers at once; what carries a command out is in the modules
of `log_lake.cli`, which `Command.run` names.
"""
