"""Group commit: under contention the writer of an entry commits the transactions of waiting writers with its own.

`requests` are the drafts that wait; `attempt` is one commit under way, alone or with requests; `states` is the
table of its states and events.
"""
