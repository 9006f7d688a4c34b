"""docs/trust.md: the first agent makes `$jobs` with the rights of the administrator; without them it works."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import NotFound
from local.rights import ROLES, Role, allows
from log_lake.agents.jobs import list_jobs, recorded
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from tests.support.records import an_id
from tests.support.rights import RightsStore


@pytest.mark.parametrize("is_administrator", [True, False])
def test_the_first_agent_makes_the_pool_of_jobs_if_it_may(is_administrator: bool) -> None:
    store = MemoryStore("memory://first")
    pool = Lake.create_on(store).create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1]}))
    ids = {"POOL": "*", "JOBS": "*"} if is_administrator else {"POOL": pool.config.id, "JOBS": an_id(1)}
    rights = (*ROLES["agent compact"].rights, *(ROLES["administrator"].rights if is_administrator else ()))
    limited = RightsStore(store, lambda operation, name: allows(Role("", rights), operation, name, ids))
    done = []
    with recorded(Lake.open_on(limited), agent="compact", pool_name="p"):
        done.append("the work")
    lake = Lake.open_on(store)
    assert done == ["the work"]
    if is_administrator:
        assert [job.agent for job in list_jobs(lake)] == ["compact"]
    else:
        assert limited.denied
        with pytest.raises(NotFound):
            lake.pool(naming.JOBS)
