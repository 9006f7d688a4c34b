"""The values that an agent's tasks pass to each other: work, deferred pools, results; encoded in one place.

`find` returns `Found`: work for the tasks `run`, and facts for the report alone.  `run` turns a `Work` into a
`Result`. An agent adds fields in subclasses.  `encoded` gives the form in packs, XComs of Airflow, outcomes of
submitted applications, `$jobs` and `--json`.  `Agent.decoded_work` and `Agent.decoded_result` decode it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from lake_core.naming import MAIN
from lake_core.store.meter import Counts
from log_lake.loading.source_files import SourceFile


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work: the lake as the run names it, a pool, a branch, and a title: one line for people.

    `piece` identifies it among all work, also among the work of other runs of `find`; `task` is the number of
    its mapped task.  Both are empty until the work is packed.
    """

    lake: str
    pool: str
    branch: str = MAIN
    title: str = ""
    piece: str = ""
    task: int | None = None

    @property
    def weight(self) -> int:
        """How much the work costs, relative to other work of the same agent; at least 1."""
        return 1

    @property
    def share(self) -> int:
        """How many pieces its pool gives in a turn, if a run takes work of several pools in turns; at least
        1."""
        return 1

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """The source files that the work loads."""
        return ()

    @property
    def replaces(self) -> bool:
        """Whether the work replaces a part of the pool's records."""
        return False

    @property
    def questions(self) -> tuple[str, ...]:
        """What a person is asked before the work is done, one line for each point."""
        return (self.title,)

    @property
    def is_begun(self) -> bool:
        """Whether the work is already begun, so that it stays pending if a person refuses it now."""
        return True


class PutOff(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run defers, and why.  `pool` is empty if it defers work of several pools together.

    `failed`: the error of a pool that cannot be read.  Its record in `$jobs` has three numbers: `parked` files,
    `late` files, and the pieces of work that the limit `left`.  `looked_at`: the agent found work there.
    `is_begun`: as in `Work`.
    """

    lake: str = ""
    pool: str
    branch: str = ""
    title: str
    why: str = msgspec.field(name="put_off")
    failed: str = ""
    parked: int = 0
    late: int = 0
    left: int = 0
    looked_at: bool = False
    is_begun: bool = True

    @classmethod
    def of(cls, work: Work, why: str) -> PutOff:
        """Returns a deferral of work that was already found, with the reason `why`."""
        title = f"{work.pool}: put off: {why}"
        return cls(
            lake=work.lake,
            pool=work.pool,
            branch=work.branch,
            title=title,
            why=why,
            looked_at=True,
            is_begun=work.is_begun,
        )


@dataclass(frozen=True, kw_only=True)
class Written:
    """What a piece of work did to its pool, for lineage.

    `version`: the newest version that it committed, or covered by a checkpoint; None without one.  `records`,
    `objects` and `size` (bytes) are what it wrote, None if it does not count them.  `unread`: files that it
    left out.
    """

    version: int | None
    records: int | None = None
    objects: int | None = None
    size: int | None = None
    unread: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Result:
    """What came of a piece of work; `piece` is that of the work, empty if the work was not packed.

    `cost`: the requests and bytes of the work, None if they were not measured.
    """

    pool: str
    piece: str = field(default="", kw_only=True)
    cost: Counts | None = field(default=None, kw_only=True)

    @property
    def wrote(self) -> Written:
        """Returns what the work wrote to its pool.  An agent that counts records, objects or bytes overrides this
        and adds them."""
        return Written(version=getattr(self, "version", None))


W = TypeVar("W", bound=Work)


@dataclass(frozen=True)
class Found(Generic[W]):
    """What an agent's task `find` hands out: work for the tasks `run`, and the deferred pools."""

    work: Sequence[W] = ()
    put_off: Sequence[PutOff] = ()


_PACKED = ("piece", "task", "cost")


def encoded(value: Work | PutOff | Result) -> dict[str, Any]:
    """Returns the value as plain values, for JSON; `piece`, `task` and `cost` are left out if they are not known.

    Airflow stores a list as it is, but a tuple as an object that names its class.
    """
    values: dict[str, Any] = _with_lists(msgspec.to_builtins(value))
    packed = {name: values.pop(name, None) for name in _PACKED}
    return values | {name: one for name, one in packed.items() if one not in (None, "")}


def _with_lists(value: Any) -> Any:
    """Returns the value with lists in place of tuples."""
    if isinstance(value, dict):
        return {name: _with_lists(one) for name, one in value.items()}
    return [_with_lists(one) for one in value] if isinstance(value, list | tuple) else value
