"""Limits what a run may name in a group: its lake, and files to append; by the rules of
`airflow_lake.allowed`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_lake import allowed
from airflow_lake.groups.config import LakeConfig
from log_lake.loading.places import NONE, Places, sources

if TYPE_CHECKING:
    from log_lake.lake import Lake


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What the DAG file itself names when it is parsed, and what a run may therefore name: the group's lake and
    files, and the defaults of parameters."""

    lake: Any = ""
    files: Any = ()
    defaults: Places = NONE
    reads_params: bool = False
    """Whether the group takes parameters of its run, or a template in its config reads them."""

    @classmethod
    def of(cls, config: LakeConfig, *, params: Mapping[str, Any] | None, takes_params: bool) -> Bounds:
        """Returns what the DAG file names for a group with this config, in a DAG with these parameters."""
        texts = (config.lake, *config.pools, config.branch, config.dry_run, *config.asked.values())
        return cls(
            lake=config.lake,
            files=config.asked.get("files", ()),
            defaults=allowed.defaults(params),
            reads_params=takes_params or any(allowed.is_given(one, conf=allowed.ANY_CONF) for one in texts),
        )

    def check(
        self,
        request: Mapping[str, Any],
        *,
        params: Mapping[str, Any] | None,
        conf: Mapping[str, Any],
        opened: Callable[[str], Lake],
        environ: Mapping[str, str],
    ) -> None:
        """Raises InvalidInput if the request names something that the run, with this conf, may not name.

        `params`: the parameters of the run, None if the group reads none.  `request`: what they and the config
        ask for.
        """
        told = {name for name in ("lake", "files") if conf and params and params.get(name)}
        if "lake" in told or allowed.is_given(self.lake, conf=conf):
            places = allowed.of_templates(self.lake) | self.defaults
            allowed.check_lake(request["lake"], task="find", places=places, environ=environ)
        if "files" in told or allowed.is_given(self.files, conf=conf):
            lake = opened(request["lake"])
            places = allowed.of_templates(self.files) | self.defaults
            for pool in [lake.pool(name) for name in request.get("pools") or ()] or lake.pools():
                places |= sources(pool.settings)
            allowed.check_files(request["files"], task="find", places=places, environ=environ)
