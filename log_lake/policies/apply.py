"""Reads a policy file, and makes a lake match it.

New pools and changed settings are one entry of the list of pools: all of them or none (decision 89).  Pools are
dropped afterwards, one by one, as `lake drop` does.  If a run is killed, the next run with the same file
finishes it.  If the list changed after the difference was shown, nothing is done, and the caller compares again.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass

from lake_core.errors import InvalidInput, PlanAgain
from lake_core.phrases import human_size
from lake_core.store import Address
from log_lake.lake import Lake
from log_lake.loading.failures import unopened
from log_lake.loading.opening import remote
from log_lake.policies.difference import Difference
from log_lake.policies.limits import POLICY_LIMITS, PolicyLimits

log = logging.getLogger(__name__)

STDIN = "-"


@dataclass(frozen=True)
class Applied:
    """What applying a file did: the version of the list of pools afterwards (0: no entry was written), and the
    dropped pools."""

    version: int
    dropped: int


def read_text(path: str, *, access: Address | None = None, limits: PolicyLimits = POLICY_LIMITS) -> str:
    """Returns the text of a file: local, s3://, gs://, or `-` for standard input; `access` is the address of the
    lake.

    Raises NotFound, Unavailable, InvalidInput (too large, not UTF-8, a folder).
    """
    data = _bytes(path, limits.max_bytes + 1, access)
    if len(data) > limits.max_bytes:
        raise InvalidInput(
            f"{path} is larger than {human_size(limits.max_bytes)}, the most that a policy file may have; split "
            "it into several"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise InvalidInput(
            f"{path}:{line}:{column}: byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from error


def _bytes(path: str, most: int, access: Address | None) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read(most)
    try:
        if "://" in path:
            fs, inside = remote(path, access)
            with fs.open(inside, "rb") as file:
                return bytes(file.read(most))
        with open(path, "rb") as file:
            return file.read(most)
    except Exception as error:  # clients of stores raise classes of many families
        raise unopened(f"the policy file {path!r}", error) from error


def carry_out(lake: Lake, difference: Difference) -> Applied:
    """Creates, changes and drops pools, as the difference says.

    Raises PlanAgain if the list of pools changed meanwhile, NotFound if the drop of a pool to change was
    interrupted, Conflict, OutcomeUnknown, Unavailable.  After any error the same file may be applied again.
    """
    version = 0
    if difference.created or difference.changed:
        version = lake.change_pools(
            created=[
                lake.new_pool(
                    one.policy.name,
                    key=one.policy.key,
                    kind=one.policy.kind,
                    settings=one.policy.settings,
                    aggregates=one.policy.aggregates,
                )
                for one in difference.created
            ],
            changed=[(one.pool, one.changes) for one in difference.changed],
        )
    dropped = 0
    for pool in difference.dropped:
        listed = lake.catalog.load().state.pools.get(pool.id)
        if listed is None:  # another run dropped it
            continue
        if listed.name != pool.name:
            raise PlanAgain(
                f"pool {pool.name!r} was renamed to {listed.name!r} meanwhile; apply the file again"
            )
        version = lake.drop_pool(pool.name, id=pool.id)
        dropped += 1
        log.info("%s: dropped", pool.name)
    return Applied(version, dropped)
