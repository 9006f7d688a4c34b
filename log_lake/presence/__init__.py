"""Which objects must be on the store, and why one is not.

    absence      explains a missing object: vacuumed, taken by others since the plan, or damage
    roots        the objects that tags keep
    lease_list   who is at work on a pool now
    extent       how far the journal reaches, so that what it may have lost is no orphan

Called by all that reads, plans, deletes or checks objects.
"""
