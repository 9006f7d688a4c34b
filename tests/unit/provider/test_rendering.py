"""What templates of the provider's tasks give, in environments for texts and for native values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import Environment, StrictUndefined, Undefined
from jinja2.exceptions import UndefinedError
from jinja2.nativetypes import NativeEnvironment

from airflow_lake.rendering import KeepsTexts
from lake_core.errors import InvalidInput


class Airflows:
    """Airflow's own method, for a text."""

    def render_template(self, content: str, context: Any, env: Any, _: Any) -> Any:
        return self._render(env.from_string(content), context)  # type: ignore[attr-defined]


class Task(KeepsTexts, Airflows):
    template_ext = (".sql",)


def rendered(template: Any, *, native: bool, **values: Any) -> Any:
    env = (NativeEnvironment if native else Environment)(undefined=StrictUndefined)
    return Task().render_template(template, values, env)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(
    "template",
    [
        "t < '{{ x }}'",
        "s3://in/{{ x }}/*.csv",
        "{{ x }}-{{ 1 }}",
        "{{ none }} ",
        "{% macro of(key) %}{{ key }}{% endmacro %}k = {{ of(x) }}",
        "{% macro of(key) %}'{{ key }}'{% endmacro %}{{ of(x) }}",
        "{% for one in [x, 1] %}{{ one }}{% endfor %}",
    ],
)
def test_none_inside_a_longer_text_is_refused(template: str, native: bool) -> None:
    """Else a delete of `t < 'None'` would delete every date, and a replace by the folder `None` a whole day."""
    with pytest.raises(
        InvalidInput, match=r"gave nothing \(None\) inside the text '?\"?.*None.*nothing was done"
    ):
        rendered(template, native=native, x=None)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("t < '{{ 'None' }}'", "t < 'None'"),
        ("t < '{{ x or '2024' }}'", "t < '2024'"),
        ("{% set day = x %}{% if day is none %}no day{% endif %}", "no day"),
        ("k = {{ 1.50 }}", "k = 1.5"),
        ("{% macro of(key) %}'{{ key }}'{% endmacro %}{{ of('1_0') }}", "'1_0'"),
    ],
)
def test_what_the_template_itself_says_stands(template: str, text: str, native: bool) -> None:
    assert rendered(template, native=native, x=None) == text


def test_a_template_of_none_alone_is_left_to_what_reads_the_parameter() -> None:
    """Airflow's own words: some parameters may be empty (`given`)."""
    texts = (
        rendered("{{ x }}", native=False, x=None),
        rendered("{% if x %}a{% endif %}", native=False, x=None),
    )
    assert texts == ("None", "")
    assert type(texts[0]) is str
    assert rendered("{{ x }}", native=True, x=None) is None
    assert rendered("{{ x }}", native=True, x=["07"]) == ["07"]


def test_a_dag_may_say_itself_what_none_becomes() -> None:
    env = Environment(finalize=lambda value: "-" if value is None else value)
    assert Task().render_template("k = {{ x }}", {"x": None}, env) == "k = -"


@pytest.mark.parametrize("native", [False, True])
def test_a_name_without_a_value_inside_a_longer_text_is_refused_whatever_jinja_writes_for_it(
    native: bool,
) -> None:
    """A DAG with `template_undefined=jinja2.Undefined` lets Jinja write nothing: `k > ''` deletes all."""
    env = (NativeEnvironment if native else Environment)(undefined=Undefined)
    with pytest.raises(InvalidInput, match=r"a template gave nothing .* inside the text .k > ''"):
        Task().render_template("k > '{{ x.day }}'", {"x": {}}, env)
    with pytest.raises(UndefinedError):
        rendered("k > '{{ x.day }}'", native=native, x={})
    alone = Task().render_template("{{ x.day }}", {"x": {}}, Environment(undefined=Undefined))
    assert (alone, type(alone)) == ("", str)


@pytest.mark.parametrize("native", [False, True])
def test_an_empty_text_between_quotes_of_a_condition_is_refused(native: bool) -> None:
    env = (NativeEnvironment if native else Environment)()
    task = Task()
    filled_in = [
        task.render_template(template, {"x": ""}, env)
        for template in (
            "k > '{{ x }}'",
            "k > ''",
            "{{ x }}k > 'a'",
            "k > '{{ x or 'a' }}'",
            "k > '{{ x }}a'",
        )
    ]
    with pytest.raises(InvalidInput, match="a template gave an empty text between quotes"):
        task.check_condition(filled_in[0])
    for where in (*filled_in[2:], None):
        task.check_condition(where)
    Task().check_condition(filled_in[1])


@pytest.mark.parametrize("native", [False, True])
def test_an_empty_text_between_slashes_of_a_files_name_is_refused(native: bool) -> None:
    env = (NativeEnvironment if native else Environment)()
    task = Task()

    def named(template: str) -> list[str]:
        return [task.render_template(template, {"x": ""}, env)]

    for template in ("in/{{ x }}/*.csv", "s3://in/{{ x }}/{{ x }}", "in/{{ x }}"):
        with pytest.raises(
            InvalidInput, match="a template gave an empty text between slashes; nothing was done"
        ):
            task.check_files_named(named(template))
    for template in (
        "in//a.csv",
        "in/{{ x }}*.csv",
        "in/day{{ x }}/a.csv",
        "{{ x }}in/a.csv",
        "in/{{ x or 'a' }}",
    ):
        task.check_files_named(named(template))


class DagParam:
    """As Airflow calls the class of `dag.param(...)`."""


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("asked", ["{{ params.low }}", "{% if params['low'] %}a{% endif %}", DagParam()])
def test_a_parameter_is_not_read_if_airflow_has_left_the_conf_of_the_run_out(
    asked: Any, native: bool
) -> None:
    """Airflow does so with `dag_run_conf_overrides_params = False`: the default's key would be deleted."""
    run = SimpleNamespace(conf={"low": "two"})
    with pytest.raises(
        InvalidInput, match="the conf of the run says low='two', which is not among its parameters"
    ):
        rendered(asked, native=native, dag_run=run, params={"low": "one"})


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(
    ("template", "params"),
    [
        ("{{ params.low }}", {"low": "two"}),
        ("{{ dag_run.conf.low }}", {"low": "one"}),
        ("two", {"low": "one"}),
    ],
)
def test_a_template_of_the_conf_itself_or_of_nothing_is_filled_in(
    template: str, params: dict[str, Any], native: bool
) -> None:
    run = SimpleNamespace(conf={"low": "two"})
    assert rendered(template, native=native, dag_run=run, params=params) == "two"
