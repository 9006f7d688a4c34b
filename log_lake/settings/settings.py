"""A setting of a pool: a name with its type, its default and its meaning; and the settings of one pool.

Each room declares its settings as a table `SETTINGS`, beside the code that reads them.  `log_lake.all_settings`
gathers the tables: this module knows no room.

The lake stores a setting as the text that the user gave; its type (`setting_types`) reads it.  So an old lake
gets the defaults of a newer program.  `type.FIELD=TYPE` declares a field's type,
`index.NAME=KIND(FIELD)` an index.  `lake set`, `lake show`, the policy file, its JSON schema and docs/policies.md
are made from this list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lake_core.errors import InvalidInput
from lake_core.phrases import did_you_mean
from log_lake.indexes.cluster_rule import ClusterRule, depths_of
from log_lake.indexes.rule import INDEX_PREFIX, IndexRule, parse_rule, rules_of
from log_lake.settings.setting_types import TEXT, SettingType

if TYPE_CHECKING:  # `lake --help` and `lake load --help` read this module: they need no Arrow
    import pyarrow as pa

    from lake_core.keys import PoolKey
    from lake_core.records.pools import PoolConfig

TYPE_PREFIX = "type."

CLUSTERS_SINCE = 3
"""The version of a lake from which on a compaction may divide records (decision 527)."""

PREFIXES = (TYPE_PREFIX, INDEX_PREFIX)
"""Settings with these prefixes are named by the user: the type of a field, an index rule."""


def is_known(name: str) -> bool:
    """Whether a pool may have a setting with this name."""
    return name in KNOWN or name.startswith(PREFIXES)


def _never(before: Settings, after: Settings) -> bool:
    return False


def _fits_all(settings: Settings, kind: str, key: PoolKey) -> None:
    """The check of settings that every pool can use: it does nothing."""


@dataclass(frozen=True)
class Setting:
    """One setting: the type of its text, its default text, its meaning for users.

    `removes_more` tells whether a change of a pool's settings lets agents remove more than before.  `check` takes a
    value that is set, the pool's kind and its key, and raises InvalidInput if such a pool cannot use it.
    """

    type: SettingType
    default: str
    meaning: str
    removes_more: Callable[[Settings, Settings], bool] = _never
    check: Callable[[Settings, str, PoolKey], None] = _fits_all

    def parse(self, text: str) -> Any:
        """Returns the value of the text. Raises ValueError."""
        return self.type(text)


def keeps_less(name: str) -> Callable[[Settings, Settings], bool]:
    """Returns a function that tells whether the setting keeps less than before; without a value it keeps
    everything."""

    def removes_more(before: Settings, after: Settings) -> bool:
        kept, keeps = before[name], after[name]
        return keeps is not None and (kept is None or keeps < kept)

    return removes_more


@dataclass(frozen=True)
class Together:
    """A check of several settings that may exclude each other; it runs if one of the settings in `names` changes.

    `check` takes the settings, the pool's kind and its key, and raises InvalidInput.
    """

    names: frozenset[str]
    check: Callable[[Settings, str, PoolKey], None]


SETTINGS = {"description": Setting(TEXT, "", "what the pool holds, for people")}
"""The one setting that belongs to no room."""

KNOWN: dict[str, Setting] = {}
"""Every setting by name, in the order of `lake show` and the docs; `log_lake.all_settings` gathers them."""

_TOGETHER: list[Together] = []


def declare(settings: Mapping[str, Setting], together: Iterable[Together]) -> None:
    """Makes these settings known. The package calls it once, with the settings of all rooms, before any module is
    used."""
    KNOWN.update(settings)
    _TOGETHER.extend(together)


class Settings:
    """Typed access to a pool's settings."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def __getitem__(self, name: str) -> Any:
        text = self.text(name)
        try:
            return KNOWN[name].parse(text)
        except ValueError as error:  # an older program accepted it
            raise InvalidInput(f"setting {name}={text}: {error}") from error

    def text(self, name: str) -> str:
        """Returns the text of a setting that the user gave, or its default text."""
        return self._texts.get(name, KNOWN[name].default)

    @property
    def declared(self) -> dict[str, pa.Field]:
        """The fields whose type the pool's settings declare, by name."""
        from lake_core.values.types import declared_field

        return {
            name[len(TYPE_PREFIX) :]: declared_field(name[len(TYPE_PREFIX) :], text)
            for name, text in self._texts.items()
            if name.startswith(TYPE_PREFIX)
        }

    @property
    def index_rules(self) -> tuple[IndexRule, ...]:
        """The indexes that every new data object gets."""
        return rules_of(self._texts)

    @property
    def allowed_depth(self) -> int:
        """How many objects may overlap at a key: `compact.depth` of each bucket, and of none."""
        depth: int = self["compact.depth"]
        return depth * depths_of(self["cluster.by"])

    @property
    def cluster(self) -> ClusterRule | None:
        """How new data objects divide records by the hash of a field; None: they do not."""
        rule: ClusterRule | None = self["cluster.by"]
        return rule if rule is None else replace(rule, least=self["cluster.least"])


def check_settings(
    changes: Mapping[str, str],
    *,
    kind: str,
    key: PoolKey,
    aggregates: Mapping[str, str] | None = None,
    stored: Mapping[str, str] | None = None,
) -> None:
    """Raises InvalidInput if loads or agents could not use a changed setting in a pool of this kind and key.

    `stored` are the pool's settings before the change, because some settings exclude each other.
    """
    for name, text in changes.items():
        check_setting(name, text, kind=kind, key=key, aggregates=aggregates)
    check_together({**(stored or {}), **changes}, changes, kind=kind, key=key)


def pool_check(format_version: int) -> Callable[[PoolConfig, Mapping[str, str]], None]:
    """Returns `check_pool`, as `Catalog` calls it, for a lake of this format version.

    The check also raises InvalidInput if the lake's format is too old for one of the settings.
    """
    return partial(_check_pool_of, format_version)


def _check_pool_of(format_version: int, pool: PoolConfig, changes: Mapping[str, str]) -> None:
    if changes.get("cluster.by") and format_version < CLUSTERS_SINCE:
        raise InvalidInput(
            f"setting cluster.by: this lake has format version {format_version}, and programs of that version "
            "cannot read objects that a compaction divides: run lake upgrade"
        )
    check_pool(pool, changes)


def check_pool(pool: PoolConfig, changes: Mapping[str, str]) -> None:
    """Raises InvalidInput if the pool cannot have the changed settings beside its others; `Catalog` calls
    this."""
    check_settings(changes, kind=pool.kind, key=pool.key, aggregates=pool.aggregates, stored=pool.settings)


def check_setting(
    name: str, text: str, *, kind: str, key: PoolKey, aggregates: Mapping[str, str] | None = None
) -> None:
    """Raises InvalidInput if no load or agent could use the setting in a pool of this kind and key."""
    if not isinstance(text, str):
        raise InvalidInput(f"setting {name}={text!r}: give its value as text, as {str(text)!r}")
    if not _is_text(name) or not _is_text(text):
        raise InvalidInput(f"setting {name!r}={text!r} is not UTF-8; write it in UTF-8")
    if text == "":
        return
    if name.startswith(TYPE_PREFIX):
        _check_type(name.removeprefix(TYPE_PREFIX), text, kind=kind, key=key, aggregates=aggregates or {})
        return
    if name not in KNOWN and name.startswith(INDEX_PREFIX):
        try:
            parse_rule(name, text)
        except ValueError as error:
            raise InvalidInput(f"setting {name}={text}: {error}") from error
        return
    if name not in KNOWN:
        raise InvalidInput(
            f"setting {name!r} is unknown; {did_you_mean(name, [*KNOWN, 'type.FIELD', 'index.NAME'])} "
            "(lake show POOL lists them)"
        )
    alone = Settings({name: text})
    _ = alone[name]
    KNOWN[name].check(alone, kind, key)


def check_together(texts: Mapping[str, str], changes: Collection[str], *, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput if settings of the pool exclude each other; `changes` names the changed ones."""
    given = Settings({name: text for name, text in texts.items() if text})
    for group in _TOGETHER:
        if not group.names.isdisjoint(changes):
            group.check(given, kind, key)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_type(name: str, text: str, *, kind: str, key: PoolKey, aggregates: Mapping[str, str]) -> None:
    """Raises InvalidInput if the field cannot have the type in this pool, so that every load would fail."""
    from lake_core.schemas.hidden import check_names
    from lake_core.schemas.limits import name_fault
    from lake_core.values.types import declared_field, is_json
    from log_lake.combine.declared import check_type

    if fault := name_fault(name):
        raise InvalidInput(f"setting {TYPE_PREFIX}FIELD={text}: {fault}")
    check_names([name])
    field = declared_field(name, text)
    if name in key.names and is_json(field):
        raise InvalidInput(
            f"setting {TYPE_PREFIX}{name}={text}: a field of the key must have a type with an order"
        )
    check_type(field, kind=kind, function=aggregates.get(name, ""))
