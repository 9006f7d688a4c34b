"""The coverage of a pool: which intervals of its schedule a branch holds, lacks, or has late.

settings, schedule, key_ranges   the intervals: their setting, their times, their ranges of keys; pure
coverage                         compares the intervals with the covered ranges (`lake_core.history.covered`)
held                             finds the transaction that brought each interval
table, backfills                 the result as rows, and as commands that load the gaps
"""
