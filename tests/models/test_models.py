"""Each model holds in each of its scenes, and Spin finds each broken rule.

`LAKE_TEST_SPIN=1` installs Spin and a C compiler if they are missing, as root.
"""

from __future__ import annotations

import os
import pkgutil
import re
import shutil

import pytest

from tests.models.spin import Checker, compiled, rules, text
from tests.models.table import MODELS, Breach, Scene
from tests.support.servers.daemons import programs

PROGRAMS = ("spin", "cc")
PACKAGES = ("spin", "gcc", "libc6-dev")


@pytest.fixture(scope="module")
def checkers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Checker]:
    if os.environ.get("LAKE_TEST_SPIN"):
        found = programs(PROGRAMS, packages=PACKAGES)
    elif all(map(shutil.which, PROGRAMS)):
        found = {name: name for name in PROGRAMS}
    else:
        pytest.skip("spin and cc are not both installed; LAKE_TEST_SPIN=1 installs them, as root")
    return {
        name: compiled(name, tmp_path_factory.mktemp(name), spin=found["spin"], cc=found["cc"])
        for name in MODELS
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scene"), [(name, scene) for name, model in MODELS.items() for scene in model.right]
)
def test_a_right_model_holds(checkers: dict[str, Checker], name: str, scene: Scene) -> None:
    outcome = checkers[name].run(scene)

    assert outcome.violated == ""
    assert outcome.states > 1_000  # otherwise nothing took part


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "breach"),
    [
        pytest.param(name, breach, id=breach.rule)
        for name, model in MODELS.items()
        for breach in model.breaches
    ],
)
def test_a_broken_rule_is_found(checkers: dict[str, Checker], name: str, breach: Breach) -> None:
    assert breach.violates in checkers[name].run(breach.scene, broken=breach.rule).violated


@pytest.mark.parametrize("name", MODELS)
def test_every_rule_that_a_model_can_break_is_broken_once(name: str) -> None:
    assert [breach.rule for breach in MODELS[name].breaches] == list(rules(name))


@pytest.mark.parametrize("name", MODELS)
def test_every_invariant_is_violated_by_some_broken_rule(name: str) -> None:
    model = MODELS[name]

    assert {invariant.printed for invariant in model.invariants} == {
        breach.violates for breach in model.breaches
    }
    assert len(model.invariants) == text(name).count("assert(")


@pytest.mark.parametrize(
    ("name", "inline", "function"), [(n, *pair) for n, model in MODELS.items() for pair in model.stands_for]
)
def test_what_a_model_stands_for_is_there(name: str, inline: str, function: str) -> None:
    assert re.search(rf"^(?:inline|proctype) {inline}\(", text(name), re.MULTILINE)
    assert pkgutil.resolve_name(function)
