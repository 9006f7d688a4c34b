"""Months of loads against the planner of compaction, without writing data: `make sim-compaction`.

`loads` makes them, `world` lets the planner look and its jobs land and measures, `theory` says what the literature
promises, `report` prints both, `picture` draws them.
"""
