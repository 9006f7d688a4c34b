"""Makes the pools of a lake match a policy file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_lake import allowed, given
from airflow_lake.effects import ALTER, CREATE, DROP, Effect
from airflow_lake.operators.base import LakeOperator
from airflow_lake.runs import check_typed, conf_of, marked_for_form, params_of, without_form
from log_lake.loading.places import below, named

if TYPE_CHECKING:
    from airflow.sdk import Context

    from log_lake.policies.difference import Difference


UNREAD = dict.fromkeys(("branch", "spark", "spark_conf"), "the policy file says all, and needs no Spark")
"""Arguments of other operators that this one does not read, and why."""


class LakeApplyOperator(LakeOperator):
    """Applies a policy file, as `lake apply` does: creates pools, changes settings, and with `prune` drops other
    pools.

    `path`: a file on the worker, s3:// or gs://.  A relative path begins at the folder of the DAG file, so the
    policy file may be beside it in its bundle.  Empty: the variable LAKE_POLICY_FILE of the worker.  `dry_run`
    logs the difference and changes nothing.  Unless `yes` is set, the task fails if pools would be dropped, or
    if agents would remove more than before.  If the run comes from a trigger form with the field
    `confirm`, the names of dropped pools must be typed there.  All three flags accept true and false as texts
    too, so templates may set them.

    With `takes_params`, parameters that the run sets take precedence, as in the groups.  A run cannot turn off a
    `dry_run` of the operator, because an untouched trigger form says false.

    If the pools match the file already, nothing changes, so the task may be retried as often as needed.
    """

    template_fields: Sequence[str] = ("lake", "path", "dry_run", "prune", "yes")

    def __init__(
        self,
        *,
        path: str = "",
        dry_run: bool | str = False,
        prune: bool | str = False,
        yes: bool | str = False,
        takes_params: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_name="", **kwargs)
        given.refuse_unread(kwargs, UNREAD, who=self.task_id)
        self.asked_or_default |= {"path": path}
        self.path = path
        self.dry_run = dry_run
        self.prune = prune
        self.yes = yes
        values = (self.lake, path, dry_run, prune, yes)
        self.reads_params = takes_params is True or allowed.is_given(values, conf=allowed.ANY_CONF)
        self.from_params: frozenset[str] = frozenset()
        self.takes_params = given.fixed_flag(takes_params, "takes_params", who=self.task_id)
        dag = self.get_dag()
        self.of_form = (
            marked_for_form(dag.params) if dag is not None and takes_params is True else frozenset()
        )

    def execute(self, context: Context) -> Any:
        """Applies the policy file.  Reads the parameters of the run first, if `takes_params` is set."""
        params = params_of(context, task=self.task_id) if self.reads_params else {}
        params = without_form(params, conf_of(context), marked=self.of_form)
        for name in self.template_fields if self.takes_params else ():
            value = params.get(name)
            # an empty lake or path says nothing; an empty flag is refused
            says = value is not None and (value != "" or name not in ("lake", "path"))
            if says and not (name == "dry_run" and self.dry_run is True):
                setattr(self, name, value)
                self.from_params |= {name}
        return super().execute(context)

    def check_given(self, context: Context) -> None:
        """Also checks the lake and the policy file, if they are parameters of the run."""
        super().check_given(context)
        conf = conf_of(context)
        of_dag = {name: self.asked_or_default[name] for name in ("lake", "path")}
        if conf and "lake" in self.from_params:
            places = allowed.of_templates(of_dag["lake"]) | self.defaults
            allowed.check_lake(self.lake, task=self.task_id, places=places, environ=os.environ)
        if (conf and "path" in self.from_params) or allowed.is_given(of_dag["path"], conf=conf):
            folder = getattr(context.get("dag"), "folder", "")
            own = named(os.environ.get("LAKE_POLICY_FILE", "")) | below([folder])
            places = own | allowed.of_templates(of_dag["path"]) | self.defaults
            path = self._path(context)
            allowed.check_files([path], what="path", task=self.task_id, places=places, environ=os.environ)

    def take(self) -> None:
        """Reads the names of the lake and of the policy file, and the flags."""
        self.take_asked()

    def act(self, context: Context) -> dict[str, Any]:
        """Returns how many pools were created, changed and dropped, and the version of the list of pools."""
        from lake_core.errors import InvalidInput
        from lake_core.phrases import counted
        from lake_core.store import address_of
        from log_lake.policies.apply import carry_out, read_text
        from log_lake.policies.difference import compare
        from log_lake.policies.file import parse
        from log_lake.policies.text import difference_lines, fault_lines, refusal, removal_question

        dry_run, prune, yes = (
            given.flag(getattr(self, name), name, task=self.task_id) for name in ("dry_run", "prune", "yes")
        )
        path = self._path(context)
        lake = self.get_lake()
        file, faults = parse(read_text(path, access=address_of(lake.store)))
        difference, refused = compare(file, lake.catalog.load().state, prune=prune)
        faults = faults or refused
        for line in fault_lines(path, faults):
            self.log.error("%s", line)
        if faults:
            raise refusal(path, faults)
        for line in difference_lines(difference):
            self.log.info("%s", line)
        done: dict[str, Any] = {"created": 0, "changed": 0, "dropped": 0, "version": None}
        if dry_run or difference.is_empty:
            return done
        if difference.removes and not yes:
            raise InvalidInput(
                f"{self.task_id}: to {removal_question(difference)}, set yes; nothing was changed"
            )
        if difference.dropped:
            names = [pool.name for pool in difference.dropped]
            what = f"drop {counted(len(names), 'pool')}"
            check_typed(conf_of(context), names, marked=self.of_form, what=what, task=self.task_id)
        applied = carry_out(lake, difference)
        self.effects = self._changes(difference)
        return {
            "created": len(difference.created),
            "changed": len(difference.changed),
            "dropped": applied.dropped,
            "version": applied.version,
        }

    def _changes(self, difference: Difference) -> tuple[Effect, ...]:
        changes = [
            *((CREATE, one.policy.name) for one in difference.created),
            *((ALTER, one.pool.name) for one in difference.changed),
            *((DROP, one.name) for one in difference.dropped),
        ]
        return tuple(
            Effect(lake=self.lake_name, pool=name, is_done=True, change=change) for change, name in changes
        )

    def _path(self, context: Context) -> str:
        from lake_core.errors import InvalidInput

        path = self.path or os.environ.get("LAKE_POLICY_FILE", "")
        if not path:
            raise InvalidInput(f"{self.task_id}: no policy file: set path, or the variable LAKE_POLICY_FILE")
        return path if "://" in path else os.path.join(context["dag"].folder, path)
