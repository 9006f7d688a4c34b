"""Shared by every command of the project: the parser, outputs, tables, progress, the options of reading
files.

The `lake` command, the applications on Spark and the local services print through it.  `sink` opens an output,
`output` writes records and tables to it, `parser` refuses a mistyped word in one line.
"""
