"""The coverage of a pool: which intervals of its schedule a branch holds, lacks, or has late.

`settings` says which intervals there are, `schedule` counts them, and `key_ranges` turns one into a range of keys;
these are pure.  `coverage` compares them with what the history covers (`lake_core.history.covered`); `held` finds
what brought each.  `table` shows that as rows, and `backfills` as commands that load what is lacking.
"""
