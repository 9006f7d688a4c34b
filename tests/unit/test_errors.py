"""Errors travel: between Spark tasks and the driver, and between processes, none changes or is lost."""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import pickle
import pkgutil

import pytest

import lake_core
import log_lake
from lake_core import errors
from lake_core.errors import LakeError, NoCreate, OutcomeUnknown, from_wire, to_wire

ID = "0ujtsYcgvSTl8PAuAdqWYSMnLOv"


def _made(kind: type[LakeError]) -> LakeError:
    if kind is OutcomeUnknown:
        return OutcomeUnknown("entry 7: no answer; ask again", entry_id=ID, version=7)
    return kind("pool 'naïve\udcff': 3 of 4\nrecords")


KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, LakeError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_on_the_wire_keeps_class_message_and_attributes(kind: type[LakeError]) -> None:
    error = _made(kind)
    wire = to_wire(error)
    assert wire.isascii()
    assert "\n" not in wire
    for back in (from_wire(wire), pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(back) is kind
        assert str(back) == str(error)
        assert vars(back) == vars(error)
        assert back.exit_status == error.exit_status


def test_the_entry_whose_outcome_is_unknown_is_named_on_the_other_side() -> None:
    back = from_wire(to_wire(OutcomeUnknown("?", entry_id=ID, version=7)))
    assert isinstance(back, OutcomeUnknown)
    assert (back.entry_id, back.version) == (ID, 7)


def test_what_to_do_about_an_unknown_outcome_is_said_once_with_and_without_a_token() -> None:
    said = str(from_wire(to_wire(OutcomeUnknown("entry 7: no answer", entry_id=ID, version=7))))
    assert said == (
        "entry 7: no answer. Run the command again with the same --token; without a token, first look for "
        f"{ID} in `lake log`"
    )


def test_the_advice_of_a_store_without_create_is_not_given_twice() -> None:
    assert str(pickle.loads(pickle.dumps(NoCreate("s3://b: no")))).count("LAKE_LOCK") == 1


def test_an_error_of_a_newer_program_is_still_an_error_of_the_lake() -> None:
    wire = json.loads(to_wire(errors.Conflict("begin again"))) | {"kind": "Overheated"}
    back = from_wire(json.dumps(wire))
    assert type(back) is LakeError
    assert str(back) == "begin again"


def test_every_error_of_the_lake_stands_in_one_module() -> None:
    for package in (lake_core, log_lake):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    pending, found = [LakeError], set()
    while pending:
        kind = pending.pop()
        found.add(kind)
        pending += kind.__subclasses__()
    assert {kind.__module__ for kind in found if kind.__module__.startswith(("lake_core", "log_lake"))} == {
        "lake_core.errors"
    }
    assert set(KINDS) <= found


def test_a_message_that_repeats_a_huge_value_is_shown_with_its_beginning_and_its_advice() -> None:
    error = errors.InvalidInput(f"file {'x' * 200_000!r}: does not exist; name another")
    shown = str(error)
    assert len(shown) < 4_000
    assert shown.startswith("file 'xxx")
    assert shown.endswith("xxx': does not exist; name another")
    assert "(196,137 characters)" in shown
    assert str(errors.from_wire(errors.to_wire(error))) == shown
    assert str(errors.InvalidInput("x" * 4_000)) == "x" * 4_000


def test_an_error_may_pass_if_the_caller_need_mend_nothing() -> None:
    passing = {kind.__name__ for kind in errors.kinds() if kind.may_pass}
    assert passing == {
        "Conflict",
        "CheckpointGone",
        "PlanAgain",
        "Undecided",
        "OutcomeUnknown",
        "Unavailable",
    }
    assert set(errors.kinds()) == set(KINDS)
