"""Reverts a transaction: makes the draft that undoes it on the newest state; pure.

    revert     the inverse of a change, and later changes that must be reverted first
    combined   changes of an upsert or aggregate pool, whose records hide older ones
    unmerge    the revert of a merge
    change     what a branch changed since a version

Called by `log_lake.lake.reverts`, which reads the states and commits.
"""
