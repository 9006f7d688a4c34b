"""Transactions over several pools as those see them who work with them: is there one order that explains it all?

The idea is that of Elle (Kingsbury and Alvaro, VLDB 2020): a history says who was told what and who saw what; from
it follow dependencies, and a cycle of them is an anomaly.  Nothing of the engine is asked, only its answers.

`recorded` holds a history; `checking` finds what no order explains; `world` runs one seed; `actors` are those who
write, read, kill and keep up.  `python -m tests.simulation 500 --histories` runs many seeds.
"""
