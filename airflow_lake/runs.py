"""The conf of a DAG's run, and the parameters that Airflow makes from it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_lake.allowed import NONE, Places, defaults


def conf_of(context: Mapping[str, Any]) -> Mapping[str, Any]:
    """The conf of the run, from its trigger form, request or backfill; empty if it has none."""
    return getattr(context.get("dag_run"), "conf", None) or {}


def defaults_of(operator: Any) -> Places:
    """What the DAG of an operator, and the operator, say as defaults of parameters, when the file is parsed.

    None for a mapped operator: it is made anew when it runs, and then its DAG has the values of the run instead.
    """
    if getattr(operator, "_BaseOperator__from_mapped", False):
        return NONE
    dag = operator.get_dag()
    return defaults(dag.params if dag is not None else None, operator.params)


def params_of(context: Mapping[str, Any], *, task: str) -> Mapping[str, Any]:
    """The parameters of the run.

    With `[core] dag_run_conf_overrides_params = False` Airflow leaves the conf out of them: a run that is asked for
    with `dry_run` would change the lake.  Raises InvalidInput if the conf says something else than they do.
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
