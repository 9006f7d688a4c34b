"""Carrying out a compaction: some references of a branch become one sorted run of new objects.

    begin   a job of the planner becomes work: pieces of its key range, one an output
    rewrite one piece: merge, combine, write; anywhere, by anybody, any number of times
    draft   what the branch should commit: the inputs go, the outputs come, in one transaction

Nothing here changes the history; `Branch.compact` runs a job here, `spark_apps.compact` spreads its pieces.  A job
that dies leaves objects that nobody refers to, which are the vacuum's.  Records keep their sequence, so what lands
meanwhile means the same before and after; only another compaction of the same input makes the work useless.
"""

from lake_core.compaction.work import Compaction, begin, draft, rewrite

__all__ = ["Compaction", "begin", "draft", "rewrite"]
