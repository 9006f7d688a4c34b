"""The values that an agent's tasks hand to each other: work, what is put off, results; encoded in one place.

`find` returns `Found`: work for the tasks `run`, and what the report alone is to know.  `run` turns a `Work` into a
`Result`.  An agent adds fields in classes of its own.  Packs, XComs of Airflow, outcomes of submitted applications,
`$jobs` and `--json` hold what `encoded` makes of them.  `Agent.decoded_work` and `Agent.decoded_result` are the way
back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from lake_core.naming import MAIN
from log_lake.loading.source_files import SourceFile


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work: the lake as the run names it, a pool, a branch, and a title for people.

    `piece` tells it from all other work, also from that of another `find`; `task` is the number of its task.  Both
    are empty until the work is packed.
    """

    lake: str
    pool: str
    branch: str = MAIN
    title: str = ""
    piece: str = ""
    task: int | None = None

    @property
    def weight(self) -> int:
        """How heavy it is, against other work of the same agent; at least 1."""
        return 1

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """The files that it loads."""
        return ()

    @property
    def replaces(self) -> bool:
        """Whether it replaces a part of the pool."""
        return False

    @property
    def questions(self) -> tuple[str, ...]:
        """What a person is asked before it is done, a line each."""
        return (self.title,)

    @property
    def is_begun(self) -> bool:
        """Whether it stays to be done if a person refuses it now."""
        return True


class PutOff(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run leaves alone, and why.  `pool` is empty if it is work of several pools.

    `failed`: the error of a pool that cannot be read.  `parked` files, `late` files and pieces that the limit
    `left` are figures of the record in `$jobs`.  `looked_at`: the agent found work there.  `is_begun` is that of
    the work.
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
        """A piece of work that is put off after all."""
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


@dataclass(frozen=True)
class Result:
    """What came of a piece of work; `piece` is the one of the work, empty if that was not packed."""

    pool: str
    piece: str = field(default="", kw_only=True)


W = TypeVar("W", bound=Work)


@dataclass(frozen=True)
class Found(Generic[W]):
    """What `find` hands out."""

    work: Sequence[W] = ()
    put_off: Sequence[PutOff] = ()


_PACKED = ("piece", "task")


def encoded(value: Work | PutOff | Result) -> dict[str, Any]:
    """The value as plain values, for JSON; what was not packed says nothing of it.

    Airflow keeps a list as it is, and a tuple as an object that names its class.
    """
    values: dict[str, Any] = _with_lists(msgspec.to_builtins(value))
    packed = {name: values.pop(name, None) for name in _PACKED}
    return values | {name: one for name, one in packed.items() if one not in (None, "")}


def _with_lists(value: Any) -> Any:
    """The value with lists in place of tuples."""
    if isinstance(value, dict):
        return {name: _with_lists(one) for name, one in value.items()}
    return [_with_lists(one) for one in value] if isinstance(value, list | tuple) else value
