"""The conf of a DAG's run, and the parameters that Airflow makes from it; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from airflow_lake.allowed import defaults
from airflow_lake.given import is_template
from log_lake.loading.places import NONE, Places


def conf_of(context: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the conf of the run, from its trigger form, request or backfill; empty if the run has none."""
    return getattr(context.get("dag_run"), "conf", None) or {}


def defaults_of(operator: Any) -> Places:
    """Returns the defaults of the parameters of an operator's DAG, and those of the operator, as they are while
    the DAG file is parsed.

    Returns `NONE` for a mapped operator: Airflow makes it anew when it runs, and by then its DAG has the values
    of the run in place of the defaults.
    """
    if getattr(operator, "_BaseOperator__from_mapped", False):
        return NONE
    dag = operator.get_dag()
    return defaults(dag.params if dag is not None else None, operator.params)


_PARAMS = re.compile(r"\bparams\b")


def reads_params(value: Any) -> bool:
    """Whether the value is a template of parameters, or one of them (`dag.param`); the inside of a list is not
    examined."""
    if isinstance(value, str):
        return is_template(value) and bool(_PARAMS.search(value))
    return type(value).__name__ == "DagParam"


def params_of(context: Mapping[str, Any], *, task: str) -> Mapping[str, Any]:
    """Returns the parameters of the run.

    With `[core] dag_run_conf_overrides_params = False` Airflow leaves the conf out of them: a run with
    `dry_run` in its conf would change the lake.  Raises InvalidInput if the conf differs from them.
    """
    from lake_core.errors import InvalidInput

    params: Mapping[str, Any] = context.get("params") or {}
    for name, value in conf_of(context).items():
        if name not in params or params[name] != value:
            raise InvalidInput(
                f"{task}: the conf of the run says {name}={value!r}, which is not among its parameters: Airflow's "
                "[core] dag_run_conf_overrides_params is False. Set it to True, or start the run without a conf; "
                "nothing was done"
            )
    return params


OF_FORM = "of_form"
"""The mark of a parameter whose default counts only in the trigger form; schedules send no such default (decision
282)."""
CONFIRM = "confirm"
"""The parameter in which a person types the names of the pools again."""


def marked_for_form(params: Mapping[str, Any] | None) -> frozenset[str]:
    """Returns the names of a DAG's parameters that are marked as belonging to the trigger form (`OF_FORM`), when
    the DAG file is parsed."""
    get = getattr(params, "get_param", None)
    return frozenset(name for name in params or () if get is not None and get(name).schema.get(OF_FORM))


def without_form(
    params: Mapping[str, Any], conf: Mapping[str, Any], *, marked: frozenset[str]
) -> dict[str, Any]:
    """Returns the parameters of a run, without the defaults of the trigger form.

    A parameter that is `marked` counts only if the run's `conf` has it, that is if a person sent the form.  The
    field Confirm (`CONFIRM`), in which a person types the pools' names, is left out: it is no parameter of an
    agent.
    """
    kept = (name for name in params if name not in marked or (name in conf and name != CONFIRM))
    return {name: params[name] for name in kept}


def check_typed(
    conf: Mapping[str, Any], names: Sequence[str], *, marked: frozenset[str], what: str, task: str
) -> None:
    """Raises InvalidInput if a person sent the form, and did not type the `names` of the pools again.

    Without names, the person types `all pools`.  `what` says in the error what the run would do.  If the conf
    lacks the parameter in which names are typed, it does not come from the form.
    """
    from lake_core.errors import InvalidInput

    if CONFIRM not in marked or CONFIRM not in conf:
        return
    expected = " ".join(names) or "all pools"
    if sorted((conf[CONFIRM] or "").split()) != sorted(expected.split()):
        raise InvalidInput(
            f"{task}: this run would {what}: to start it, type {expected!r} in Confirm, or switch Dry run on; "
            "nothing was done"
        )
