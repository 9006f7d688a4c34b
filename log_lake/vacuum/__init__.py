"""Deleting objects that nothing needs: removed objects, and objects that were never committed.

    ages      which versions are old enough, by the clock of the store
    plan      which removed objects may be deleted, and why (pure); a plan that was written down
    execute   does a plan, and nothing more; survives a kill anywhere
    orphans   puts objects that were never committed onto the list of removed objects
    indexes   finds index objects that nothing uses
    dropped   deletes dropped pools whose grace time is over
    reach     which old versions can still be restored, and until when

Nothing is deleted that a branch, a tag, a live lease, or a reader within the grace time may need.  Only
`execute` deletes data objects of listed pools.  `agents.retention` calls these in order.
"""
