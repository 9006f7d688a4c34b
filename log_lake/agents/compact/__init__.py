"""The compact agent: merges objects that overlap, so that reading stays fast.

`policy` reads a pool's settings, and `plan` asks `log_lake.compaction` which references to merge (both pure).
`run` finds the pools, and `report` has the words.  `log_lake.rewriting.compaction` carries out the jobs.

docs/compaction.md has the theory, and the measurements of the simulator.
"""

from typing import TYPE_CHECKING

from lake_core.faces import on_demand

if TYPE_CHECKING:
    from log_lake.agents.compact.plan import plan_compaction
    from log_lake.agents.compact.policy import policy_of

__all__ = ["plan_compaction", "policy_of"]

__getattr__ = on_demand(__name__, {"plan_compaction": "plan", "policy_of": "policy"})
