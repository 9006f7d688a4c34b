"""docs/trust.md: what a caller of `lake serve` can do, by its role and by the rights of the server."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from local.rights import PAGE, ROLES, Operation, allows
from log_lake.iceberg_catalog.callers import CallerRole
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from tests.support.rights import RightsStore
from tests.support.service import Served

QUERY, LOAD, POOL = "/lakes/lake/query", "/lakes/lake/pools/p/load", "/lakes/lake/pools/new"
ASKED = {
    "read": ("POST", QUERY, "", "SELECT * FROM p"),
    "load": ("POST", LOAD, "token=l", '{"k": 2}'),
    "change": ("POST", QUERY, "token=c", "DELETE FROM p WHERE k = 9"),
    "create": ("PUT", POOL, "key=k", ""),
    "drop": ("DELETE", "/lakes/lake/pools/q", "", ""),
}
"""By what a caller does: the method, the path, the parameters and the body."""
MAY = {
    CallerRole.CATALOG: (),
    CallerRole.READER: ("read",),
    CallerRole.WRITER: ("read", "load", "change"),
    CallerRole.KEEPER: ("read", "load", "change", "create", "drop"),
}


def a_lake() -> Lake:
    lake = Lake.create_on(MemoryStore("memory://callers"))
    for name in ("p", "q"):
        lake.create_pool(name, key="k").branch().append(pa.table({"k": [1, 9]}))
    return lake


def statuses(served: Served, role: CallerRole) -> dict[str, int]:
    """What becomes of each request of a caller with this role."""
    return {
        does: served.ask(method, path, body, query=query, role=role).status
        for does, (method, path, query, body) in ASKED.items()
    }


@pytest.mark.parametrize("role", CallerRole)
def test_a_caller_does_what_its_role_may_and_nothing_else(role: CallerRole) -> None:
    assert {does for does, status in statuses(Served(a_lake()), role).items() if status < 300} == set(
        MAY[role]
    )


def test_the_page_has_each_role_of_callers() -> None:
    section = PAGE.read_text().partition("### Callers of `lake serve`")[2].partition("\n#")[0]
    named = re.findall(r"^\| (catalog|reader|writer|keeper) \|", section, re.MULTILINE)
    assert named == [role.name.lower() for role in CallerRole]


@pytest.mark.parametrize(
    ("roles", "does"),
    [(("reader",), {"read"}), (("reader", "SQL"), {"read", "load", "change"})],
)
def test_a_caller_can_do_no_more_than_the_server(roles: tuple[str, ...], does: set[str]) -> None:
    lake = a_lake()
    ids = {"POOL": lake.pool("p").config.id, "JOBS": "none"}

    def may(operation: Operation, name: str) -> bool:
        return any(allows(ROLES[role], operation, name, ids) for role in roles)

    told = statuses(Served(Lake.open_on(RightsStore(lake.store.behind, may))), CallerRole.KEEPER)
    assert {one for one, status in told.items() if status < 300} == does
    assert set(told.values()) <= {200, 503}
    assert [pool.name for pool in lake.pools()] == ["p", "q"]
