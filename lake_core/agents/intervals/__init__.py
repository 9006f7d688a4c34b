"""The interval agent: a run for an interval of time replaces exactly that interval of a pool, in one transaction.

`policy` turns an interval into a key range and into the path of its files (pure); `plan` finds the files.
"""
