"""Erasure: records that must be gone from the bytes of every object of a pool, with a receipt that can be checked.

    target    which records are meant, and what an object keeps of them (pure)
    search    which objects hold such records, wherever they are: branches, tags, removed objects, orphans
    rewrite   one reference written again without such records
    receipt   what was erased, what is held and by whom: an object beside the pool
    run       the steps: hide, rewrite, vacuum exactly these objects, purge; survives a kill anywhere
    verify    checks a receipt against the store, at any time

A delete hides records; an erasure removes them from the bytes of every object.  Callers: `lake erase`,
`lake verify-erasure`.
"""
