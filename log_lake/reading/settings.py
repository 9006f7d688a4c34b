"""The settings of reads: the filters, by which records are hidden (`filters`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lake_core.errors import InvalidInput
from log_lake.settings.setting_types import DURATION_PATTERN, SettingType, duration, if_given, pattern
from log_lake.settings.settings import Setting, Settings, Together

if TYPE_CHECKING:  # loads Arrow, which `lake --help` does not need
    from lake_core.keys import PoolKey
    from lake_core.records.conditions import Condition


def _age_off(text: str) -> tuple[str, float] | None:
    field, colon, age = text.rpartition(":")
    if text and not (colon and field):
        raise ValueError("use FIELD:DURATION, such as ts:30d")
    return (field, duration(age)) if text else None


@lru_cache(maxsize=256)
def _condition(text: str) -> Condition:
    """Returns the condition of a text.  Results are cached, because each read asks for some.  Raises ValueError."""
    from log_lake.where import parse

    try:
        return parse(text)
    except InvalidInput as error:
        raise ValueError(str(error)) from error


@dataclass(frozen=True)
class OwnCall:
    """A function of an installed package, its version, and the fields that it gets (`where.own`)."""

    function: str
    version: int
    fields: tuple[str, ...]


def _own_call(text: str) -> OwnCall:
    """Returns the call that a text says.  Raises ValueError."""
    match = re.fullmatch(r"([A-Za-z][A-Za-z0-9_.-]*)@([0-9]{1,9})\(([^()]+)\)", text.strip())
    names = tuple(name.strip() for name in match[3].split(",")) if match else ()
    if match is None or not all(names) or len(set(names)) < len(names):
        raise ValueError("use NAME@VERSION(FIELD,...), such as clean@3(level,code)")
    return OwnCall(match[1], int(match[2]), names)


def _hides_more(before: Settings, after: Settings) -> bool:
    """Whether the changed `age_off` uses another field than before, or hides younger records."""
    old, new = before["age_off"], after["age_off"]
    return new is not None and (old is None or new[0] != old[0] or new[1] < old[1])


def _keeps_others(name: str) -> Callable[[Settings, Settings], bool]:
    """Returns whether the changed filter may hide records that it showed before, for two states of the settings."""
    return lambda before, after: after[name] not in (None, before[name])


def _check(settings: Settings, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput if no record of the pool could age by this field, because of the field or the pool's
    kind."""
    if kind == "aggregate" and settings["age_off"][0] not in key.names:
        raise InvalidInput(
            f"setting age_off={settings.text('age_off')}: in an aggregate pool it must name a field of the key "
            f"({key})"
        )


def _check_condition(settings: Settings, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput for a condition on fields that an aggregate pool combines from many records."""
    from lake_core.conditions import top_level

    if kind == "aggregate":
        _check_of_key(
            settings, "keep.where", top_level(settings["keep.where"]), key, "the condition may name"
        )


def _check_own(settings: Settings, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput if the function is not installed, or gets fields that an aggregate pool combines."""
    from log_lake.where.own import find_filter

    call: OwnCall = settings["keep.by"]
    find_filter(call.function, call.version)
    if kind == "aggregate":
        _check_of_key(settings, "keep.by", call.fields, key, "the function may get")


def _check_of_key(settings: Settings, name: str, fields: Sequence[str], key: PoolKey, what: str) -> None:
    """Raises InvalidInput for a field that is not one of the key."""
    if others := [one for one in fields if one not in key.names]:
        raise InvalidInput(
            f"setting {name}={settings.text(name)}: {others[0]!r} is combined from many records; in an aggregate "
            f"pool {what} fields of the key only ({key})"
        )


def _check_declared(settings: Settings, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput if a field that the function gets has no declared type, or is JSON."""
    call: OwnCall | None = settings["keep.by"]
    if call is None:
        return
    from lake_core.values.types import is_json

    declared = settings.declared
    for name in call.fields:
        if name not in declared or is_json(declared[name]):
            raise InvalidInput(
                f"setting keep.by={settings.text('keep.by')}: the function gets {name!r} in its declared type; "
                f"declare one that is not json: type.{name}=TYPE"
            )


FITS = Together(frozenset({"keep.by"}), _check_declared)

AGE_OFF = SettingType(
    _age_off, "`FIELD:DURATION`, such as `ts:30d`", pattern(f"(?:.|\n)+:{DURATION_PATTERN}")
)
CONDITION = if_given(SettingType(_condition, "a condition, such as `level != 'debug'`"))
OWN_CALL = if_given(
    SettingType(
        _own_call,
        "`NAME@VERSION(FIELD,...)`, such as `clean@3(level,code)`",
        pattern(r"\s*[A-Za-z][A-Za-z0-9_.-]*@[0-9]{1,9}\([^()]+\)\s*"),
    )
)

SETTINGS = {
    "age_off": Setting(
        AGE_OFF, "", "FIELD:DURATION: hide and later remove records older than this", _hides_more, _check
    ),
    "keep.where": Setting(
        CONDITION,
        "",
        "condition: hide and later remove records for which it is not true",
        _keeps_others("keep.where"),
        _check_condition,
    ),
    "keep.by": Setting(
        OWN_CALL,
        "",
        "hide and later remove records that this function of an installed package does not keep",
        _keeps_others("keep.by"),
        _check_own,
    ),
}
