"""Texts that are no templates stay as the DAG says them, also in a DAG that renders native objects.

With `render_template_as_native_obj=True` Airflow reads every text as a value of Python: the key "1.50" would become
1.5, and the delete would be of another key.  Called by Airflow, for the operators and the tasks of the groups.
"""

from __future__ import annotations

from typing import Any

from jinja2.nativetypes import NativeEnvironment

from airflow_lake.given import is_template


class KeepsConstants:
    """Renders templates alone."""

    template_ext: Any

    def render_template(
        self, content: Any, context: Any, jinja_env: Any = None, seen_oids: set[int] | None = None
    ) -> Any:
        """As Airflow's own; it calls this for each text in a field too."""
        is_text = isinstance(content, str) and not content.endswith(tuple(self.template_ext))
        if is_text and isinstance(jinja_env, NativeEnvironment) and not is_template(content):
            return content
        return super().render_template(content, context, jinja_env, seen_oids)  # type: ignore[misc]
