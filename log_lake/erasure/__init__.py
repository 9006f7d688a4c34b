"""Erasure: records that must be gone from the bytes of every object of a pool, with a receipt that can be checked.

    target    which records are meant, and what an object keeps of them (pure)
    holding   whether one object holds such a record
    search    which objects hold such records, wherever they are: branches, tags, removed objects, orphans
    hiding    the tombstones of an erasure, on every branch
    holders   who may still need an object, and how to release it (pure)
    receipt   what was erased, what is held and by whom: an object beside the pool
    noting    what a run notes in its receipt
    begin     checks what is asked for, and writes the receipt
    run       the steps: hide, rewrite (by `log_lake.rewriting`), vacuum exactly these objects, purge; survives a
              kill anywhere
    sighting  what an erasure would find: its dry run
    verify    checks a receipt against the store, at any time

A delete hides records; an erasure removes them from the bytes of every object.  Callers: `lake erase`,
`lake verify-erasure`, the erasure agent.
"""
