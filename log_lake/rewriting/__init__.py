"""Rewriting replaces references of a branch by references to new objects; no record changes its meaning.

    work         begin: what to read, what to leave out and what to write, as one value; write: one object a piece
    counting     compares the numbers of records of inputs and new objects; conserving: their content
    exchange     commit: one transaction that removes references and adds objects; a lost race is a result
    compaction   carries out a planner's job: begin, write and commit, under a lease

Compaction, the tombstones agent, expiry and erasure all change references here.  If a job dies, it leaves
objects that no reference names.  Records keep their sequences, so whatever others commit meanwhile means the
same before and after.  If another writer removes an input first, nothing is committed.
"""
