"""Keeps texts as texts, also in a DAG that renders native objects.

With `render_template_as_native_obj=True` Jinja reads every text as a Python value: the key "1.50" would become
1.5, the pool "1_000" would become 1000, and a delete would remove another key.  Here a text without a template
stays unchanged, and a template gives the value of its expression: a text, a list, a number.

An expression that gives None inside a longer text would become the word "None" there: `t < 'None'` is true for
every date, and the folder `None` has no file.  So that is refused (decision 368), and so is a name without a value,
if the DAG lets Jinja write nothing for it; `given` refuses a text that is None as a whole.  In a condition an empty
text between quotes is refused too: `t > ''` is true for every text (decision 496).  So is an empty folder in
the name of a file: no file is in `in//`.  Called by Airflow, for the operators, the sensor, and the tasks of the
groups.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jinja2 import Undefined, pass_context
from jinja2.nativetypes import NativeEnvironment

from airflow_lake.given import is_template
from airflow_lake.runs import params_of, reads_params


class KeepsTexts:
    """A base of operators that renders only templates, and never reads a plain text as a Python value."""

    template_ext: Any
    params_of_run: Mapping[str, Any] | None = None
    """The parameters of the run, once Airflow renders templates for it; later calls have no context."""
    holed: frozenset[str] = frozenset()
    """Rendered texts in which an expression between quotes gave the empty text."""
    without_folder: frozenset[str] = frozenset()
    """Rendered texts in which an expression after a slash, and before a slash or the end, gave the empty text."""
    read_files: Mapping[str, str] = {}
    """The texts of files of templates (`template_ext`), by their names, that Airflow did not read when it parsed
    the DAG file, as for a mapped operator."""

    def render_template(
        self, content: Any, context: Any, jinja_env: Any = None, seen_oids: set[int] | None = None
    ) -> Any:
        """Renders like Airflow's own method, which also calls it for each text inside a field.

        Raises InvalidInput if the template reads parameters of the run, and Airflow leaves the run's conf out
        of them (`runs.params_of`): a delete would remove the default's key, and not the requested one.
        """
        self.params_of_run = context.get("params")
        env = jinja_env or self.get_template_env()  # type: ignore[attr-defined]
        if isinstance(content, str) and content.endswith(tuple(self.template_ext)):
            name, content = content, env.loader.get_source(env, content)[0]
            self.read_files = {**self.read_files, name: content}
        if reads_params(content):
            params_of(context, task=getattr(self, "task_id", ""))
        if isinstance(content, str) and not is_template(content) and isinstance(env, NativeEnvironment):
            return content
        return super().render_template(content, context, _keeping(env), seen_oids)  # type: ignore[misc]

    def _render(self, template: Any, context: Any, dag: Any = None) -> Any:
        """Renders like Airflow's own method, but does not read the joined texts as Python
        (`airflow.sdk.definitions.context`).  Raises InvalidInput for None inside a longer text."""
        env = template.environment
        values = copy.copy(context)
        values.update((name, value) for name, value in template.globals.items() if name not in values)
        try:
            nodes = list(
                template.root_render_func(env.context_class(env, values, template.name, template.blocks))
            )
        except Exception:
            env.handle_exception()
        rendered = env.concat(nodes)
        if _has_hole(nodes, "'", "'"):
            self.holed |= {rendered}
        if _has_hole([*nodes, "/"], "/", "/"):
            self.without_folder |= {rendered}
        return rendered[:] if isinstance(rendered, _Nothing) else rendered

    def check_condition(self, where: Any) -> None:
        """Raises InvalidInput if a template gave the empty text between quotes in this condition: `t > ''` would be
        all records."""
        from lake_core.errors import InvalidInput

        if isinstance(where, str) and where in self.holed:
            task = getattr(self, "task_id", "")
            raise InvalidInput(
                f"{task}: where={where!r}: a template gave an empty text between quotes; nothing was done. Give "
                "the expression a value, or say in the template what stands there instead"
            )

    def check_files_named(self, names: Iterable[str]) -> None:
        """Raises InvalidInput if a template gave the empty text between two slashes, or after the last one.

        No file is in `in//`, so a replace with `missing="empty"` would remove its range; `in/` is all of `in`.
        """
        from lake_core.errors import InvalidInput

        for name in names:
            if name in self.without_folder:
                task = getattr(self, "task_id", "")
                raise InvalidInput(
                    f"{task}: files={name!r}: a template gave an empty text between slashes; nothing was done. "
                    "Give the expression a value, or say in the template what stands there instead"
                )


class _Nothing(str):
    """What a template would print for None, or for a name without a value, as a value that differs from that
    text."""

    __slots__ = ()

    def __str__(self) -> str:
        return self


NOTHING = _Nothing("None")
UNDEFINED = _Nothing("")


def joined(values: Iterable[Any]) -> Any:
    """Returns a single value unchanged, several values as one text, and None if there is no value.

    Raises InvalidInput for None, or a name without a value, among several.
    """
    parts = list(values)
    if len(parts) > 1 and any(isinstance(_or_nothing(None, part), _Nothing) for part in parts):
        from lake_core.errors import InvalidInput

        text = "".join(map(str, parts))
        raise InvalidInput(
            f"a template gave nothing (None) inside the text {text!r}; nothing was done. Give the expression a "
            "value, or say in the template what stands there instead"
        )
    return None if not parts else parts[0] if len(parts) == 1 else "".join(map(str, parts))


def joined_text(values: Iterable[Any]) -> str:
    """Returns the values as one text, empty if there is none.  Raises InvalidInput for None among several."""
    text: str = joined(values) or ""
    return text


def _keeping(env: Any) -> Any:
    """Returns the environment, changed so that None inside a text is noticed, also in macros and blocks; these
    keep native texts too.  A `finalize` of the DAG is called first."""
    if env.concat in (joined, joined_text):
        return env
    keeping = copy.copy(env)
    is_native = isinstance(env, NativeEnvironment)
    keeping.finalize = env.finalize or (_as_it_is if is_native else _or_nothing)
    keeping.concat = joined if is_native else joined_text
    return keeping


@pass_context
def _as_it_is(_: Any, value: Any) -> Any:
    """Returns the value unchanged.  It takes the context only so that Jinja evaluates a constant, such as `{{
    ['a', 'b'] }}`, when it renders; otherwise Jinja would make it a text when it compiles the template."""
    return value


@pass_context
def _or_nothing(_: Any, value: Any) -> Any:
    """Returns the value, or what stands for no value.  Raises UndefinedError for a name without a value, unless the
    DAG lets Jinja write nothing for it (`template_undefined`)."""
    if isinstance(value, Undefined):
        return value if str(value) else UNDEFINED
    return NOTHING if value is None else value


def _has_hole(parts: Sequence[Any], before: str, after: str) -> bool:
    """Whether an empty part stands between these two characters."""
    texts = [part if isinstance(part, str) else "-" for part in parts]
    around = zip(texts, texts[1:], texts[2:], strict=False)
    return any(not part and (left[-1:], right[:1]) == (before, after) for left, part, right in around)
