"""Taking a transaction back: the draft that undoes it on the newest state; pure.

    revert     the inverse of a change, and what stands against it
    combined   changes of an upsert or aggregate pool, which hide what lies below them
    unmerge    the merge of a branch taken back
    change     what a branch changed since a version

Called by `log_lake.lake.reverts`, which reads the states and commits.
"""
