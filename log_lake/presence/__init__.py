"""Decides which objects must be on the store, and why one is missing.

    absence      explains a missing object: vacuumed, removed by others after the plan, or damage
    roots        the objects that tags keep
    lease_list   the processes that are at work on a pool now
    extent       the time range of the journal, so that objects of lost entries do not count as orphans

Called by all code that reads, plans, deletes or checks objects.
"""
