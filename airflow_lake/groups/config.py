"""What a task group works on, as one value that a DAG file makes; no store and no connection is asked for it.

Texts may be templates of Airflow (`"{{ params.pool }}"`): they are filled in when a task of the group runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any


@dataclass(frozen=True, kw_only=True)
class LakeConfig:
    """Which lake, which pools, which Spark.

    `lake`: the id of a connection of type lake, or a URI; empty: the variable LAKE of the worker, then
    lake_default.  `pools`: empty: all that have work.  `spark`: the id of a connection of type spark_connect or
    spark; empty: what the connection of the lake names, otherwise LAKE_SPARK_REMOTE or LAKE_SPARK_MASTER of the
    worker.  `asked`: the parameters of one agent alone, as its trigger form has them (`{"wait":  False}`).

    `airflow_pool`: the pool of Airflow, which bounds how many tasks run at once, for all tasks of the group; empty:
    that of the DAG's default_args, otherwise Airflow's default pool.  `pool_slots`: the slots of it that each task
    `run` takes, at least 1; the other tasks take one.  If the pool has fewer slots, the task never starts.

    `approval`: a person is asked before the retention or the erasure agent deletes; without an answer within
    `approval_timeout` nothing is deleted.
    """

    lake: str = ""
    pools: Sequence[str] = ()
    branch: str = "main"
    spark: str = ""
    dry_run: bool = False
    asked: Mapping[str, Any] = field(default_factory=dict)
    airflow_pool: str = ""
    pool_slots: int = 1
    approval: bool = False
    approval_timeout: timedelta = timedelta(days=7)

    def __post_init__(self) -> None:
        if isinstance(self.pools, str) or not isinstance(self.pools, Collection):
            raise ValueError(f"LakeConfig: pools must be a list of names (got {self.pools!r})")
        if not isinstance(self.asked, Mapping):
            raise ValueError(f"LakeConfig: asked must be parameters by name (got {self.asked!r})")
        is_whole = isinstance(self.pool_slots, int) and not isinstance(self.pool_slots, bool)
        if not (is_whole and self.pool_slots >= 1):
            raise ValueError(
                f"LakeConfig: pool_slots must be a whole number, at least 1 (got {self.pool_slots!r})"
            )
        object.__setattr__(self, "pools", tuple(self.pools))

    @property
    def named_pools(self) -> tuple[str, ...]:
        """The pools, if they are known when the DAG file is parsed; empty if there is a template among them."""
        return () if any("{{" in text for text in (self.lake, *self.pools)) else tuple(self.pools)

    @property
    def pool_args(self) -> dict[str, Any]:
        """What all tasks of the group are given, so that they run in the pool of Airflow."""
        return {"pool": self.airflow_pool} if self.airflow_pool else {}

    @property
    def slot_args(self) -> dict[str, Any]:
        """What the tasks `run` are given beside that."""
        return {"pool_slots": self.pool_slots} if self.pool_slots > 1 else {}

    def plain(self, *, agent: str, also: tuple[str, ...]) -> dict[str, Any]:
        """The request to an agent that knows the parameters `also`, and the Spark, as plain values.

        Raises ValueError for a parameter that the agent does not know.
        """
        asked = dict(self.asked)
        if self.branch != "main":
            asked["branch"] = self.branch
        unknown = sorted(set(asked) - set(also))
        if unknown:
            from lake_core.agents.request import COMMON

            raise ValueError(
                f"the agent {agent} has no parameter {unknown[0]!r}; it has {', '.join((*COMMON, *also))}"
            )
        return {
            "request": {"lake": self.lake, "pools": list(self.pools), "dry_run": self.dry_run, **asked},
            "spark": self.spark,
            "filled": [
                *(name for name in ("lake", "spark") if _is_filled_in(getattr(self, name))),
                *(["pools"] if any(map(_is_filled_in, self.pools)) else []),
                *(name for name, value in asked.items() if _is_filled_in(value)),
            ],
        }


def _is_filled_in(value: Any) -> bool:
    """Whether the value is a template, or the result of another task: known when the task runs."""
    if isinstance(value, str):
        return "{{" in value or "{%" in value
    return not isinstance(value, bool | int | float | list | tuple | None)


def request_of(config: Mapping[str, Any], params: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a run asks for: the request of the group, in which parameters of the run that are set take precedence.

    `params` is None if the group does not read those of its DAG, which may be for something else.  Raises
    InvalidInput for a parameter of the group that a template left empty.
    """
    from lake_core.errors import InvalidInput

    request = dict(config["request"])
    for name in config.get("filled", ()):
        value = config[name] if name == "spark" else request[name]
        for one in value if name == "pools" else [value]:
            if one in (
                None,
                "",
                "None",
            ):  # without it the agent would do more than was asked for, or elsewhere
                raise InvalidInput(
                    f"the parameter {name!r} is empty after its template was filled in (got {one!r}); nothing "
                    "was done"
                )
    for name, value in (params or {}).items():
        if value is not None and value not in ("", []):
            request[name] = value
        else:
            request.setdefault(name, value)
    return request
