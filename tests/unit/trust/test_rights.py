"""docs/trust.md: each role does its work with the rights that it lists, and misses each that is taken away."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import LakeError
from lake_core.history import Draft
from lake_core.records import Prepare
from local.rights import (
    GOOGLE,
    PAGE,
    ROLES,
    S3,
    Operation,
    Right,
    Role,
    allows,
    google_bindings,
    s3_policy,
    with_tables,
)
from local.rights import named as named_pattern
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from tests.support.rights import RightsStore
from tests.support.roles import POOL_OF, WORK, World

REQUIRED = [(name, right) for name, role in ROLES.items() for right in role.rights if not right.lost]
OPTIONAL = [(name, right) for name, role in ROLES.items() for right in role.rights if right.lost]
SAID = {
    Operation.READ: "to read it",
    Operation.LIST: "to list",
    Operation.CREATE: "to create it",
    Operation.PUT: "to write it",
    Operation.DELETE: "to delete it",
}
"""The words of an error for what was denied."""
KINDS = sorted({(right.operation.value, right.names, right.lost) for _, right in OPTIONAL})


@dataclass(frozen=True)
class Ran:
    """What became of a role's work: the error, None if it was done; what was denied; and what was logged."""

    error: LakeError | None
    denied: frozenset[tuple[Operation, str]]
    lines: tuple[str, ...]


class Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def run(name: str, rights: tuple[Right, ...], folder: Path) -> Ran:
    """The work of a role with these rights, in a new world."""
    world = World(folder)
    ids = {"POOL": world.pools[POOL_OF.get(name, "p")], "JOBS": world.jobs}
    store = RightsStore(
        world.store, lambda operation, target: allows(Role("", rights), operation, target, ids)
    )
    handler, logger = Lines(), logging.getLogger()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    error = None
    try:
        WORK[name](world, store)
    except LakeError as raised:
        error = raised
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    return Ran(error, frozenset(store.denied), tuple(handler.lines))


def without(name: str, right: Right) -> tuple[Right, ...]:
    return tuple(one for one in ROLES[name].rights if one != right)


def named(role_and_right: tuple[str, Right]) -> str:
    name, right = role_and_right
    return f"{name}-{right.operation.value}-{right.names}".replace("/", ":")


def test_each_role_has_work() -> None:
    assert WORK.keys() == ROLES.keys()


@pytest.mark.parametrize("name", ROLES)
def test_a_role_with_all_of_its_rights_is_denied_nothing(name: str, tmp_path: Path) -> None:
    ran = run(name, ROLES[name].rights, tmp_path)
    assert ran.error is None, ran.lines
    assert ran.denied == frozenset()


@pytest.mark.parametrize("name", ROLES)
def test_a_role_does_its_work_without_any_optional_right(name: str, tmp_path: Path) -> None:
    ran = run(name, tuple(right for right in ROLES[name].rights if not right.lost), tmp_path)
    assert ran.error is None, ran.lines


@pytest.mark.slow
@pytest.mark.parametrize("case", REQUIRED, ids=named)
def test_one_right_less_fails_with_one_line_that_names_the_object_and_the_right(
    case: tuple[str, Right], tmp_path: Path
) -> None:
    name, right = case
    ran = run(name, without(name, right), tmp_path)
    assert ran.error is not None, "the role does not need this right"
    assert "\n" not in str(ran.error)
    lines = [line for line in (str(ran.error), *ran.lines) if "grant this process the right to" in line]
    said = {(SAID[operation], target) for operation, target in ran.denied}
    assert any(verb in line and target in line for line in lines for verb, target in said), (said, lines)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_an_optional_right_is_missed_by_some_role_that_does_its_work(
    kind: tuple[str, str, str], tmp_path: Path
) -> None:
    missed = False
    for number, (name, right) in enumerate(OPTIONAL):
        if (right.operation.value, right.names, right.lost) == kind and not missed:
            (tmp_path / str(number)).mkdir()
            ran = run(name, without(name, right), tmp_path / str(number))
            assert ran.error is None, (name, ran.error)
            missed = bool(ran.denied)
    assert missed, "no role uses this right"


def test_the_tables_of_the_page_are_those_of_the_rights() -> None:
    text = PAGE.read_text()
    assert with_tables(text) == text, "write them anew: python -m local.rights"


IDS = {"POOL": "P" * 27, "JOBS": "J" * 27}
OTHER = f"{'O' * 27}/data/x.parquet"


def example(right: Right) -> str:
    """A name that the right is for."""
    return named_pattern(right.names, IDS).replace("*", "x")


@pytest.mark.parametrize("name", ROLES)
def test_the_policy_of_s3_allows_what_the_role_needs_and_nothing_of_another_pool(name: str) -> None:
    policy = s3_policy(ROLES[name], "b", "lake/", IDS)
    statements: Any = json.loads(json.dumps(policy))["Statement"]

    def may(action: str, resource: str) -> bool:
        resources = [one["Resource"] for one in statements if one["Action"] == action]
        paths = [path for one in resources for path in ([one] if isinstance(one, str) else one)]
        return any(fnmatchcase(resource, path) for path in paths)

    assert may("s3:ListBucket", "arn:aws:s3:::b")
    for right in ROLES[name].rights:
        if right.operation is not Operation.LIST:
            assert may(S3[right.operation], f"arn:aws:s3:::b/lake/{example(right)}"), right
    assert not any(may(action, f"arn:aws:s3:::b/lake/{OTHER}") for action in S3.values())
    assert not any(may(action, f"arn:aws:s3:::b/{IDS['POOL']}/data/x") for action in S3.values())


@pytest.mark.parametrize("name", ROLES)
def test_the_conditions_of_google_hold_for_what_the_role_needs_and_for_no_other_pool(name: str) -> None:
    bindings: Any = google_bindings(ROLES[name], "b", "lake", IDS)
    conditions = {one["permissions"][0]: one["condition"] for one in bindings}
    assert conditions.pop("storage.objects.list") is None

    def holds(permission: str, object_name: str) -> bool:
        """What Google would say; the few words of its language that are used mean the same in Python."""
        text = conditions[permission]["expression"].replace("&&", "and").replace("||", "or")
        text = text.replace("startsWith", "startswith").replace("endsWith", "endswith")
        resource = SimpleNamespace(name=f"projects/_/buckets/b/objects/{object_name}")
        return bool(eval(text, {"resource": resource}))

    for right in ROLES[name].rights:
        if right.operation is not Operation.LIST:
            assert all(holds(one, f"lake/{example(right)}") for one in GOOGLE[right.operation]), right
    assert not any(holds(permission, f"lake/{OTHER}") for permission in conditions)


@pytest.mark.parametrize("name", ["reader", "loader"])
def test_a_role_must_also_read_the_transactions_over_a_pool_while_one_is_committed(name: str) -> None:
    behind = MemoryStore()
    lake = Lake.create_on(behind)
    pool = lake.create_pool("a", key="k")
    pool.branch().append(pa.table({"k": [1]}))
    tx, ids = lake.transaction(), lake.context.ids
    tx.pool("a").append(pa.table({"k": [2]}))
    part = Prepare(tx.id, tx.branch, "main", ids.new())
    pool.history.commit(Draft(ids.new(), "", pool.history.load().version, "owner", (part,)))

    def work(*more: Right) -> None:
        role = Role("", (*ROLES[name].rights, *more))
        store = RightsStore(
            behind, lambda *asked: allows(role, *asked, {"POOL": pool.config.id, "JOBS": "none"})
        )
        there = Lake.open_on(store).pool("a")
        if name == "reader":
            assert there.at().to_table()["k"].to_pylist() == [1]
        else:
            there.branch().append(pa.table({"k": [3]}))

    with pytest.raises(LakeError, match=r"transactions/.*grant this process the right to read it"):
        work()
    work(Right(Operation.READ, "transactions/*"))
