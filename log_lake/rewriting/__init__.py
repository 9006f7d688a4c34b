"""Rewriting replaces references of a branch by references to new objects; no record changes its meaning.

    work         begin: what to read, what to leave out and what to write, as one value; write: one object per piece
    counting     compares the numbers of records in the inputs and in the new objects
    conserving   compares the content of the inputs and of the new objects
    exchange     commit: one transaction that removes references and adds objects; a lost race is a result
    compaction   carries out a planner's job: begin, write and commit, under a lease

Compaction, the tombstones agent, expiry and erasure all change references here.  If a job dies, it leaves
objects that no reference names.  Records keep their sequences, so a delete or load that another writer commits
meanwhile applies to the new objects as it would to the old ones.  If another writer removes an input first,
nothing is committed.
"""
