"""Transactions over several pools, as one pool's history sees them (docs/transactions.md).

`part` is a pending part in the state; `commuting` decides what may be committed beside it; `preparing` makes and
folds the actions; `decisions` holds the objects of the lake that say whether a transaction lives and is committed.
"""
