"""Group commit: under contention the writer of an entry commits the transactions of waiting writers with its own.

`requests` are the transactions that wait; `attempt` is one commit under way, alone or with requests.
"""
