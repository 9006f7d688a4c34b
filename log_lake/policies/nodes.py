"""Reads YAML text as nodes that know their places, without types (decision 88).

PyYAML only splits the text into events; it makes no values.  So no tag can construct anything, `no` and `1.10`
stay the texts that were written, and every node has a line and a column.  Anchors, aliases and merge keys
(`<<`) work.  Duplicate keys, tags and a second document are faults.  An alias may not stand inside its own
anchor, so nodes are trees and no walk is endless.  Text that aliases and merges repeat counts against the
limits as if it were written out.

One event costs one step; no code here is recursive, however deeply the text is nested.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import yaml

from log_lake.policies.limits import POLICY_LIMITS, PolicyLimits

MERGE = "<<"
_NULLS = ("", "~", "null", "Null", "NULL")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader, if PyYAML was built with it: it splits 1,000 pools in 0.07 s, Python's own in 0.60 s."""


def is_null(text: str) -> bool:
    """Whether a text without quotes is a null of YAML."""
    return text in _NULLS


class TextPlace(NamedTuple):
    """A line and a column, both from 1."""

    line: int
    column: int


class Fault(NamedTuple):
    """What is wrong in a policy file, and where."""

    place: TextPlace
    message: str


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A scalar as it was written."""

    place: TextPlace
    text: str
    is_quoted: bool = False

    @property
    def is_null(self) -> bool:
        """Whether it is YAML's null: empty, `~` or `null`, without quotes."""
        return not self.is_quoted and is_null(self.text)


@dataclass(frozen=True, slots=True)
class MappingNode:
    """A mapping: its keys and values, in the order of the text; each key once.  `size` counts the nodes in it."""

    place: TextPlace
    entries: tuple[tuple[ScalarNode, PolicyNode], ...]
    size: int = 1


@dataclass(frozen=True, slots=True)
class SequenceNode:
    """A sequence: its items, in the order of the text."""

    place: TextPlace
    nodes: tuple[PolicyNode, ...]
    size: int = 1


PolicyNode = ScalarNode | MappingNode | SequenceNode


class Stop(Exception):
    """Raised if the text cannot be read any further; it has the fault that is the reason."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def read_nodes(text: str, *, limits: PolicyLimits = POLICY_LIMITS) -> tuple[PolicyNode | None, list[Fault]]:
    """Returns the document in the text, and its faults; None if no document could be read."""
    composer = _Composer(limits)
    try:
        for event in _events(text):
            composer.take(event)
    except Stop as stop:
        return None, sorted([*composer.faults, stop.fault])
    if composer.root is None and not composer.faults:
        composer.faults.append(Fault(TextPlace(1, 1), "the file is empty; name the pools below pools:"))
    return composer.root, composer.faults


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = TextPlace(mark.line + 1, mark.column + 1) if mark else TextPlace(1, 1)
        context = f" ({error.context})" if error.context else ""
        raise Stop(Fault(place, f"this is not YAML: {error.problem}{context}; correct it")) from error
    except yaml.reader.ReaderError as error:
        position = error.position if isinstance(error.position, int) else 0
        before = text[:position]
        place = TextPlace(before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1)
        raise Stop(Fault(place, f"this is not YAML: {error.reason}; remove the character")) from error
    except RecursionError as error:  # of PyYAML built without libyaml
        raise Stop(Fault(TextPlace(1, 1), "the text is nested too deeply; write it flat")) from error


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been read yet."""

    place: TextPlace
    anchor: str | None
    is_mapping: bool
    nodes: list[PolicyNode] = field(default_factory=list)


class _Composer:
    """Takes events one after another and builds the tree. The stack holds the open collections, the innermost one
    last."""

    def __init__(self, limits: PolicyLimits) -> None:
        self.root: PolicyNode | None = None
        self.faults: list[Fault] = []
        self._limits = limits
        self._stack: list[_Open] = []
        self._anchors: dict[str, PolicyNode] = {}
        self._nodes = 0
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        """Adds one event.  Raises Stop if a limit is reached, or a second document begins."""
        place = TextPlace(event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise Stop(Fault(place, "a second document begins here; write all pools in one"))
        elif isinstance(event, yaml.CollectionStartEvent):
            self._check_tag(event.tag, place)
            if len(self._stack) >= self._limits.max_depth:
                raise Stop(
                    Fault(place, f"the text is nested deeper than {self._limits.max_depth}; write it flat")
                )
            self._count(1, place)
            self._stack.append(_Open(place, event.anchor, isinstance(event, yaml.MappingStartEvent)))
        elif isinstance(event, yaml.CollectionEndEvent):
            opened = self._stack.pop()
            node = self._members(opened) if opened.is_mapping else self._items(opened)
            self._add(node, opened.anchor)
        elif isinstance(event, yaml.ScalarEvent):
            self._check_tag(event.tag, place)
            self._count(1, place)
            self._add(ScalarNode(place, event.value, is_quoted=bool(event.style)), event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._add(self._aliased(event.anchor, place), None)

    def _aliased(self, anchor: str, place: TextPlace) -> PolicyNode:
        node = self._anchors.get(anchor)
        if node is None:
            self.faults.append(
                Fault(
                    place, f"the alias *{anchor} has no anchor before it; write &{anchor} at what it repeats"
                )
            )
            return ScalarNode(place, "", is_quoted=True)
        self._count(_size(node), place)
        return node

    def _check_tag(self, tag: str | None, place: TextPlace) -> None:
        if tag is not None:
            name = tag.replace("tag:yaml.org,2002:", "!!")
            self.faults.append(Fault(place, f"the tag {name} is not allowed; remove it"))

    def _add(self, node: PolicyNode, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if self._stack:
            self._stack[-1].nodes.append(node)
        else:
            self.root = node

    def _items(self, opened: _Open) -> SequenceNode:
        return SequenceNode(opened.place, tuple(opened.nodes), 1 + sum(map(_size, opened.nodes)))

    def _members(self, opened: _Open) -> MappingNode:
        entries: dict[str, tuple[ScalarNode, PolicyNode]] = {}
        merged: list[tuple[ScalarNode, PolicyNode]] = []
        for key, value in zip(opened.nodes[::2], opened.nodes[1::2], strict=True):
            if not isinstance(key, ScalarNode):
                self.faults.append(Fault(key.place, "a key must be a text; quote it"))
            elif key.text == MERGE and not key.is_quoted:
                if merged:
                    self.faults.append(Fault(key.place, "<< is there twice; write << : [*ONE, *OTHER]"))
                merged.append((key, value))
            elif key.text in entries:
                first = entries[key.text][0].place.line
                self.faults.append(
                    Fault(key.place, f"{key.text!r} is there twice (first in line {first}); remove one")
                )
            else:
                entries[key.text] = (key, value)
        for key, value in merged:
            for source in value.nodes if isinstance(value, SequenceNode) else (value,):
                if not isinstance(source, MappingNode):
                    self.faults.append(
                        Fault(key.place, "<< merges mappings only; write << : *ANCHOR of a mapping")
                    )
                    continue
                for name, member in source.entries:
                    entries.setdefault(name.text, (name, member))
        size = 1 + sum(1 + _size(value) for _, value in entries.values())
        if merged:
            self._count(size, opened.place)
        return MappingNode(opened.place, tuple(entries.values()), size)

    def _count(self, count: int, place: TextPlace) -> None:
        self._nodes += count
        if self._nodes > self._limits.max_nodes:
            raise Stop(
                Fault(
                    place,
                    f"the file has more than {self._limits.max_nodes:,} texts, aliases written out; "
                    "split it into several",
                )
            )


def _size(node: PolicyNode) -> int:
    return 1 if isinstance(node, ScalarNode) else node.size
