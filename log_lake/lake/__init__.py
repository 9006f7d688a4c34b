"""The classes that users call: a lake, its pools, their branches and views.

    lake      a lake on a store: create, open, list pools
    pool      a pool: its branches, its views, its log
    branch    writes to a branch: load, append, delete, replace
    view      reads of one revision: scan, get, explain
    feed      follows a branch, transaction by transaction

`branches` creates and deletes branches, `merges` merges them, `reverts` undoes transactions, `tags` sets tags.
`branch` calls `loads`, `files` (how a pool reads files), `replaces` and `deletes`.  `delete_spec` and
`replace_checks` check the arguments of deletes and replaces; `results` has the results of writes.  No module
here knows an agent.
"""

from typing import TYPE_CHECKING

from lake_core.faces import on_demand

if TYPE_CHECKING:
    from log_lake.lake.branch import Branch
    from log_lake.lake.feed import Feed
    from log_lake.lake.lake import Lake
    from log_lake.lake.pool import Pool
    from log_lake.lake.view import View

__all__ = ["Branch", "Feed", "Lake", "Pool", "View"]

__getattr__ = on_demand(
    __name__, {"Branch": "branch", "Feed": "feed", "Lake": "lake", "Pool": "pool", "View": "view"}
)
