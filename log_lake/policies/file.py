"""A policy file: the pools that a lake shall have, each with its key, kind and settings.

    defaults:                 # for every pool that does not say otherwise
      settings:
        history.keep: 90d
    pools:
      flights:
        key: time_hour,carrier
        kind: upsert
        settings:
          compact.depth: 4

A pool has exactly the settings that stand here: its own before those of the defaults; others go back to the
program's default, as the empty text ('') does.  A section whose name begins with `x-` is a place for anchors.

All faults of a file are found at once, each with its place.  `difference` decides whether the lake's pools
can be changed to match the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lake_core import naming
from lake_core.catalog.fields import check_fields
from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.keys.spec import KeyField
from lake_core.phrases import choices, did_you_mean
from log_lake.combine.declared import FUNCTIONS, KINDS, check_rule
from log_lake.policies.limits import POLICY_LIMITS, PolicyLimits
from log_lake.policies.nodes import (
    Fault,
    MappingNode,
    PolicyNode,
    ScalarNode,
    SequenceNode,
    Stop,
    TextPlace,
    read_nodes,
)
from log_lake.settings.settings import KNOWN, check_setting, check_together, is_known

SECTIONS = ("defaults", "pools")
OF_DEFAULTS = ("key", "kind", "settings")
OF_POOL = ("key", "kind", "aggregates", "settings")
"""The allowed names in a file, in its defaults, and in a pool."""


@dataclass(frozen=True)
class PoolPolicy:
    """A pool in a policy file.  `places` has the positions of its name, key, kind and aggregates."""

    name: str
    key: PoolKey
    kind: str = "append"
    aggregates: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, TextPlace] = field(default_factory=dict, compare=False)

    def place(self, of: str) -> TextPlace:
        """Returns the position of that part; if the file leaves it out, the position of the pool's name."""
        return self.places.get(of) or self.places.get("name") or TextPlace(1, 1)


@dataclass(frozen=True)
class PolicyFile:
    """All pools of a file, by name."""

    pools: Mapping[str, PoolPolicy]


def parse(text: str, *, limits: PolicyLimits = POLICY_LIMITS) -> tuple[PolicyFile, list[Fault]]:
    """Returns the pools that the text names, and all its faults, in the order of the text.

    If there is a fault, the pools are those that could be read; do not apply them.
    """
    root, faults = read_nodes(text, limits=limits)
    reader = _Reader(faults, limits)
    pools: dict[str, PoolPolicy] = {}
    try:
        pools = {} if root is None else reader.file(root)
    except Stop as stop:
        reader.faults.append(stop.fault)
    return PolicyFile(pools), sorted(set(reader.faults))


@dataclass(frozen=True)
class _Defaults:
    """The section `defaults` as nodes."""

    key: PolicyNode | None = None
    kind: PolicyNode | None = None
    settings: tuple[tuple[ScalarNode, ScalarNode], ...] = ()


class _Reader:
    """Turns nodes into pools and gathers faults."""

    def __init__(self, faults: list[Fault], limits: PolicyLimits) -> None:
        self.faults = faults
        self._limits = limits
        self._settings = 0

    def fault(self, place: TextPlace, message: str) -> None:
        self.faults.append(Fault(place, message))

    def hint(self, name: str, names: Iterable[str]) -> str:
        """Returns the hint for an unknown name. Returns "" once there are more faults than will be listed, because
        computing a hint takes long."""
        return f"; {did_you_mean(name, names)}" if len(self.faults) <= self._limits.max_faults else ""

    def count(self, settings: int, place: TextPlace) -> None:
        """Counts the settings of pools, where those of the defaults count once for each pool. Raises Stop if there
        are too many."""
        self._settings += settings
        if self._settings > self._limits.max_nodes:
            raise Stop(
                Fault(
                    place,
                    f"the pools up to here have more than {self._limits.max_nodes:,} settings, with those of the "
                    "defaults; split the file into several",
                )
            )

    def file(self, root: PolicyNode) -> dict[str, PoolPolicy]:
        sections = self.members(root, "a policy file", SECTIONS)
        if sections is None:
            return {}
        defaults = self.defaults(sections["defaults"][1]) if "defaults" in sections else _Defaults()
        if "pools" not in sections:
            self.fault(root.place, "the file names no pools; write them below pools:")
            return {}
        name, node = sections["pools"]
        if not isinstance(node, MappingNode):
            self.fault(
                _place(node, name), "pools must be a mapping of names; write pools: {} if there are none"
            )
            return {}
        pools = [self.pool(key, value, defaults) for key, value in node.entries]
        return {pool.name: pool for pool in pools if pool is not None}

    def defaults(self, node: PolicyNode) -> _Defaults:
        parts = self.members(node, "defaults", OF_DEFAULTS) or {}
        settings: tuple[tuple[ScalarNode, ScalarNode], ...] = ()
        if "settings" in parts:
            settings = tuple(self.texts(parts["settings"][1], "settings of the defaults"))
            self.check_readable(settings)
        return _Defaults(
            parts["key"][1] if "key" in parts else None,
            parts["kind"][1] if "kind" in parts else None,
            settings,
        )

    def pool(self, name: ScalarNode, node: PolicyNode, defaults: _Defaults) -> PoolPolicy | None:
        try:
            naming.check_chosen_name(naming.check_pool_name(name.text), what="pool")
        except InvalidInput as error:
            self.fault(name.place, str(error))
            return None
        of = f"pool {name.text!r}"
        is_empty = isinstance(node, ScalarNode) and node.is_null and not node.text
        parts = {} if is_empty else self.members(node, of, OF_POOL)
        if parts is None:
            return None
        nodes = {part: value for part, (_, value) in parts.items()}
        own = self.texts(nodes.get("settings"), f"settings of {of}")
        aggregates = {
            field.text: function.text.lower()
            for field, function in self.texts(nodes.get("aggregates"), f"aggregates of {of}")
        }
        key = self.key(nodes.get("key") or defaults.key, of, name.place)
        kind = self.kind(nodes.get("kind") or defaults.kind, of)
        if key is None or kind is None:
            self.check_readable(own)
            return None
        try:
            check_rule(kind, aggregates, key)
            check_fields(key, aggregates)
        except InvalidInput as error:
            at = nodes.get("aggregates") or nodes.get("kind") or nodes.get("key")
            self.fault(at.place if at else name.place, f"{of}: {error}")
            self.check_readable(own)
            return None
        return PoolPolicy(
            name.text,
            key,
            kind,
            aggregates,
            self.settings(name, own, defaults, kind=kind, key=key, aggregates=aggregates),
            {"name": name.place} | {part: value.place for part, value in nodes.items()},
        )

    def settings(
        self,
        pool: ScalarNode,
        own: Sequence[tuple[ScalarNode, ScalarNode]],
        defaults: _Defaults,
        *,
        kind: str,
        key: PoolKey,
        aggregates: Mapping[str, str],
    ) -> dict[str, str]:
        """Returns the settings of a pool: its own take precedence over the defaults. Those whose text is empty are
        left out."""
        given = {name.text: (name, text) for name, text in defaults.settings} | {
            name.text: (name, text) for name, text in own
        }
        self.count(len(given), pool.place)
        own_names = {name.text for name, _ in own}
        before = len(self.faults)
        for name, text in given.values():
            if not is_known(name.text):
                self.unknown(name)
                continue
            try:
                check_setting(name.text, text.text, kind=kind, key=key, aggregates=aggregates)
            except InvalidInput as error:
                names_pool = name.text not in own_names and not _unreadable(name, text)
                self.fault(text.place, f"pool {pool.text!r}: {error}" if names_pool else str(error))
        texts = {name: text.text for name, (_, text) in given.items() if text.text}
        if len(self.faults) == before:
            try:
                check_together(texts, texts, kind=kind, key=key)
            except InvalidInput as error:
                self.fault(own[0][0].place if own else pool.place, f"pool {pool.text!r}: {error}")
        return texts

    def check_readable(self, settings: Sequence[tuple[ScalarNode, ScalarNode]]) -> None:
        """Adds a fault for each unknown setting, and for each value that no pool could use."""
        for name, text in settings:
            if not is_known(name.text):
                self.unknown(name)
            elif error := _unreadable(name, text):
                self.fault(text.place, f"setting {name.text}={text.text}: {error}")

    def unknown(self, name: ScalarNode) -> None:
        hint = self.hint(name.text, [*KNOWN, "type.FIELD", "index.NAME"])
        self.fault(name.place, f"unknown setting {name.text!r}{hint} (lake apply --schema lists them)")

    def key(self, node: PolicyNode | None, of: str, place: TextPlace) -> PoolKey | None:
        """Returns the key: from a text in the form of `lake create --key`, or from a list of such fields, whose
        names may contain commas."""
        if node is None:
            self.fault(place, f"{of} has no key; write key: FIELD[:desc],... in the pool or in the defaults")
            return None
        try:
            if isinstance(node, ScalarNode) and not node.is_null:
                return PoolKey.parse(node.text)
            if isinstance(node, SequenceNode) and node.nodes:
                texts = [one for one in node.nodes if isinstance(one, ScalarNode) and not one.is_null]
                if len(texts) == len(node.nodes):
                    return PoolKey(tuple(KeyField.parse(one.text) for one in texts))
        except InvalidInput as error:
            self.fault(node.place, f"{of}: {error}")
            return None
        self.fault(node.place, f"{of}: a key must be a text, such as ts:desc,host, or a list of such fields")
        return None

    def kind(self, node: PolicyNode | None, of: str) -> str | None:
        if node is None:
            return KINDS[0]
        if isinstance(node, ScalarNode) and node.text in KINDS:
            return node.text
        shown = repr(node.text) if isinstance(node, ScalarNode) else "a collection"
        self.fault(node.place, f"{of}: kind must be {choices(KINDS)} (got {shown})")
        return None

    def members(
        self, node: PolicyNode, of: str, names: Sequence[str]
    ) -> dict[str, tuple[ScalarNode, PolicyNode]] | None:
        """Returns the entries of a mapping, by name; None if the node is not a mapping.  Other names are
        faults."""
        if not isinstance(node, MappingNode):
            self.fault(node.place, f"{of} must be a mapping with {choices(names, 'and')}")
            return None
        parts: dict[str, tuple[ScalarNode, PolicyNode]] = {}
        for name, value in node.entries:
            if name.text in names:
                parts[name.text] = (name, value)
            elif names is SECTIONS and name.text.startswith("x-"):
                continue  # a place for anchors
            elif "settings" in names and is_known(name.text):
                self.fault(name.place, f"{of}: {name.text} is a setting; write it below settings:")
            else:
                self.fault(name.place, f"{of}: unknown name {name.text!r}{self.hint(name.text, names)}")
        return parts

    def texts(self, node: PolicyNode | None, of: str) -> list[tuple[ScalarNode, ScalarNode]]:
        """Returns the entries of a mapping of texts; [] if it is missing or not a mapping.  Entries of other kinds
        are faults."""
        if node is None:
            return []
        if not isinstance(node, MappingNode):
            example = _EXAMPLES[of.partition(" ")[0]]
            self.fault(node.place, f"{of} must be a mapping, a line each, such as {example}")
            return []
        pairs = []
        for name, value in node.entries:
            if not isinstance(value, ScalarNode):
                self.fault(value.place, f"{of}: {name.text} must be one text (got a collection)")
            elif value.is_null:
                self.fault(
                    _place(value, name),
                    f"{of}: {name.text} has no value; write '' for the default, or quote the word",
                )
            else:
                pairs.append((name, value))
        return pairs


_EXAMPLES = {"settings": "history.keep: 30d", "aggregates": f"bytes: {FUNCTIONS[0]}"}


def _unreadable(name: ScalarNode, text: ScalarNode) -> str:
    """Returns why no pool could use the setting; "" if some could."""
    try:
        if name.text in KNOWN and text.text:
            KNOWN[name.text].parse(text.text)
    except ValueError as error:
        return str(error)
    return ""


def _place(node: PolicyNode, name: ScalarNode) -> TextPlace:
    """Returns the place of a node; if the node is empty, and so has no text, the place of its name."""
    return name.place if isinstance(node, ScalarNode) and not node.text else node.place
