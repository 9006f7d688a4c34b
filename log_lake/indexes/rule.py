"""An index rule: which index every data object of a pool gets for one field.

A rule is a setting of the pool, `index.NAME=KIND(FIELD)`.  The kind and the field make the rule's digest, which
is part of the name of each index object.  So a changed rule never reads an index of the rule before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from lake_core.phrases import choices

INDEX_PREFIX = "index."
"""Settings with this prefix are index rules."""

BLOOM, VALUES, SKETCH = KINDS = ("bloom", "values", "sketch")
"""Which values an object certainly lacks; in which row groups each value is; distinct values and quantiles."""

LOOKED_UP = (BLOOM, VALUES)
"""The kinds that are asked for values of a condition."""

FORM = rf"({'|'.join(KINDS)})\((.+)\)"
"""What the text of a rule matches."""

_NAME = r"[A-Za-z0-9_-]{1,64}"


@dataclass(frozen=True)
class IndexRule:
    """A rule: its name in the pool, its kind, and its field, written as in a condition without quotes."""

    name: str
    kind: str
    field: str

    @property
    def digest(self) -> str:
        """16 hexadecimal digits, which depend on the kind and the field."""
        return blake2b(f"{self.kind}\0{self.field}".encode(), digest_size=8).hexdigest()

    @property
    def setting(self) -> str:
        """The name of the rule's setting."""
        return f"{INDEX_PREFIX}{self.name}"

    def __str__(self) -> str:
        return f"{self.kind}({self.field})"


def parse_rule(setting: str, text: str) -> IndexRule:
    """The rule of a setting with this name and text.  Raises ValueError."""
    name = setting.removeprefix(INDEX_PREFIX)
    if not re.fullmatch(_NAME, name):
        raise ValueError("after `index.`, a rule's name has 1 to 64 letters, digits, `_` or `-`")
    match = re.fullmatch(FORM, text.strip(), re.DOTALL)
    if match is None or not match[2].strip():
        raise ValueError(f"use {choices([f'{kind}(FIELD)' for kind in KINDS])}")
    return IndexRule(name, match[1], match[2].strip())


def rules_of(texts: Mapping[str, str]) -> tuple[IndexRule, ...]:
    """The rules in a pool's settings, by name; those with equal digests once.

    A rule of a newer program, whose text this one cannot read, is left out: its indexes are not used.
    """
    rules: dict[str, IndexRule] = {}
    for name in sorted(texts):
        if name.startswith(INDEX_PREFIX) and texts[name]:
            try:
                rule = parse_rule(name, texts[name])
            except ValueError:
                continue
            rules.setdefault(rule.digest, rule)
    return tuple(rules.values())


def digests_of(rules: Iterable[IndexRule]) -> frozenset[str]:
    """The digests of rules."""
    return frozenset(rule.digest for rule in rules)
