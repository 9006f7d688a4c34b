"""The generic journal: numbered immutable entries on a store, folded into a state.

`journal` appends and loads; `hints` keeps HEAD and TAIL, which may be anything at all without changing a
result.  One journal lists the pools of a lake, one more for each pool holds its history.  See
docs/protocol.md for the rules and why they hold.
"""

from lake_core.journal.journal import Appended, Head, Journal, Proposal

__all__ = ["Appended", "Head", "Journal", "Proposal"]
