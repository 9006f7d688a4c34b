"""Erasure: removes records from the bytes of every object of a pool, with a receipt that can be checked.

    target    which records match, and what an object keeps of them (pure)
    holding   whether one object holds a matching record
    search    which objects hold matching records: in branches, tags, removed objects, orphans
    hiding    the tombstones of an erasure, on every branch
    holders   what may still need an object, and how to release it (pure)
    copies    converted copies of objects beside published tables
    receipt   what was erased, what is held and by whom: an object beside the pool
    noting    adds to the receipt what a run finds and does
    begin     checks the request, and writes the receipt
    run       the steps: hide, rewrite (by `log_lake.rewriting`), vacuum exactly these objects, purge; survives a
              kill anywhere
    sighting  the dry run: what an erasure would find
    verify    checks a receipt against the store, at any time

A delete hides records; an erasure removes them from the bytes of every object.  Callers: `lake erase`, `lake
verify-erasure`, the erasure agent.
"""
