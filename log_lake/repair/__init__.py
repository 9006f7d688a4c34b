"""Damage: finds it, takes it out of a pool, and rebuilds a pool from its objects.

    fsck              the faults of a lake: findings, one after another; reads only
      check_journal     entries, checkpoints, fences, hints; `compare` compares checkpoints with the fold
      check_pool        requests, the state, references, objects that nothing refers to
      check_objects     footers and records, here or in tasks; `check_references` decides what they mean
      finding           the kinds of findings, how grave each is, and what to do
    removal           takes a transaction or a damaged object out of a pool
    rebuild           a new journal of a pool from the objects alone; `rebuild_plan` decides which ones count,
                      `ancestry` compares records if footers cannot tell

Nothing here overwrites or deletes an object.  Callers: the `lake` command and `spark_apps.fsck`.
"""
