"""Keeps texts as texts, also in a DAG that renders native objects.

With `render_template_as_native_obj=True` Jinja reads every text as a Python value: the key "1.50" would become
1.5, the pool "1_000" would become 1000, and a delete would remove another key.  Here a text without a template
stays as it is in the DAG, and a template gives the value of its expression: a text, a list, a number.  Called by
Airflow, for the operators, the sensor, and the tasks of the groups.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from jinja2 import pass_context
from jinja2.nativetypes import NativeEnvironment

from airflow_lake.given import is_template


class KeepsTexts:
    """Renders only templates, and never reads a plain text as a Python value."""

    template_ext: Any
    params_of_run: Mapping[str, Any] | None = None
    """The parameters of the run, once Airflow fills in templates for it: what is asked later has no context."""

    def render_template(
        self, content: Any, context: Any, jinja_env: Any = None, seen_oids: set[int] | None = None
    ) -> Any:
        """Like Airflow's own method, which also calls it for each text inside a field."""
        self.params_of_run = context.get("params")
        env = jinja_env or self.get_template_env()  # type: ignore[attr-defined]
        if not isinstance(env, NativeEnvironment):
            return super().render_template(content, context, env, seen_oids)  # type: ignore[misc]
        is_text = isinstance(content, str) and not content.endswith(tuple(self.template_ext))
        if is_text and not is_template(content):
            return content
        return super().render_template(content, context, _keeping(env), seen_oids)  # type: ignore[misc]

    def _render(self, template: Any, context: Any, dag: Any = None) -> Any:
        """Renders like Airflow's own method, but does not read the joined texts as Python
        (`airflow.sdk.definitions.context`)."""
        env = template.environment
        if not isinstance(env, NativeEnvironment):
            return super()._render(template, context, dag)  # type: ignore[misc]
        values = copy.copy(context)
        values.update((name, value) for name, value in template.globals.items() if name not in values)
        try:
            nodes = list(
                template.root_render_func(env.context_class(env, values, template.name, template.blocks))
            )
        except Exception:
            env.handle_exception()
        return joined(nodes)


def joined(values: Iterable[Any]) -> Any:
    """A single value unchanged; several values as one text; None if there is none."""
    parts = list(values)
    return None if not parts else parts[0] if len(parts) == 1 else "".join(map(str, parts))


def _keeping(env: Any) -> Any:
    """The environment, in which macros and blocks keep texts too."""
    if env.concat is joined:
        return env
    keeping = copy.copy(env)
    keeping.finalize, keeping.concat = env.finalize or _as_it_is, joined
    return keeping


@pass_context
def _as_it_is(_: Any, value: Any) -> Any:
    """The value.  Since it asks for the context, Jinja makes no text of a constant, such as `{{ ['a', 'b'] }}`."""
    return value
