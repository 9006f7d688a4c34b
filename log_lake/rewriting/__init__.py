"""Rewriting: references of a branch go, others come in their place, and no record changes its meaning.

    work         begin: what to read, what to leave out, what to write, as one value; write: one object a piece
    change       commit: one transaction that removes references and adds objects; a lost race is a result
    compaction   the job of a planner: begin, write and commit, under a lease

Compaction, the tombstones agent, expiry and erasure all change references here.  A job that dies leaves objects
that nothing refers to.  Records keep their sequences, so whatever others commit meanwhile means the same before and
after.  If another writer takes an input first, nothing is committed.
"""
