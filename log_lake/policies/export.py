"""Pools as the text of a policy file.  Applied to an empty lake, the text makes the same pools.

Only the settings that were set are written, never defaults.  A text is written without quotes if it reads back the
same; PyYAML's emitter decides what YAML needs quoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import yaml

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.records.pools import PoolConfig
from log_lake.policies.nodes import MERGE, is_null

_WIDE = 1 << 20
"""The length of a line above which PyYAML would fold it: large enough that each setting stays on one line."""


def export(pools: Iterable[PoolConfig]) -> str:
    """Returns the policy file of these pools, in the order given."""
    return str(yaml.emit(_events(list(pools)), allow_unicode=True, width=_WIDE))


def _events(pools: list[PoolConfig]) -> Iterator[yaml.Event]:
    yield yaml.StreamStartEvent()
    yield yaml.DocumentStartEvent(explicit=False)
    yield from _begin()
    yield _scalar("pools")
    yield from _begin(is_empty=not pools)
    for pool in pools:
        yield _scalar(pool.name)
        yield from _begin()
        yield _scalar("key")
        yield from _key(pool.key)
        yield _scalar("kind")
        yield _scalar(pool.kind)
        yield from _texts("aggregates", pool.aggregates)
        yield from _texts("settings", pool.settings)
        yield yaml.MappingEndEvent()
    yield yaml.MappingEndEvent()
    yield yaml.MappingEndEvent()
    yield yaml.DocumentEndEvent(explicit=False)
    yield yaml.StreamEndEvent()


def _begin(*, is_empty: bool = False) -> Iterator[yaml.Event]:
    yield yaml.MappingStartEvent(anchor=None, tag=None, implicit=True, flow_style=is_empty)


def _key(key: PoolKey) -> Iterator[yaml.Event]:
    """Yields the key as one text if that is unambiguous; otherwise as a list of fields, each with its
    direction."""
    text = str(key)
    try:
        is_told = PoolKey.parse(text) == key
    except InvalidInput:
        is_told = False
    if is_told:
        yield _scalar(text)
        return
    yield yaml.SequenceStartEvent(anchor=None, tag=None, implicit=True, flow_style=True)
    for field in key.fields:
        yield _scalar(field.name + (":desc" if field.descending else ":asc"))
    yield yaml.SequenceEndEvent()


def _texts(name: str, texts: Mapping[str, str]) -> Iterator[yaml.Event]:
    if not texts:
        return
    yield _scalar(name)
    yield from _begin()
    for key, text in sorted(texts.items()):
        yield _scalar(key)
        yield _scalar(text)
    yield yaml.MappingEndEvent()


def _scalar(text: str) -> yaml.Event:
    """Returns a text, quoted if YAML would otherwise read it as something else; line ends and invisible characters
    are escaped.

    PyYAML's quotes without escapes fold U+0085 into a space.
    """
    if not text.isprintable():
        style: str | None = '"'
    else:
        style = "'" if is_null(text) or text == MERGE else None
    return yaml.ScalarEvent(anchor=None, tag=None, implicit=(True, True), value=text, style=style)
