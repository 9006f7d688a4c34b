"""The JSON schema of a policy file, and the table of settings in docs/policies.md, from the list of settings.

An editor that is given the schema completes and checks a file while it is written; `lake apply` checks more, such
as settings that exclude each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from log_lake.combine.declared import FUNCTIONS, KINDS
from log_lake.indexes.rule import FORM, INDEX_PREFIX
from log_lake.settings.setting_types import pattern
from log_lake.settings.settings import KNOWN, TYPE_PREFIX

SCHEMA = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Returns the JSON schema of a policy file, as plain values."""
    key = {
        "description": "the fields that the records are sorted by: FIELD[:desc],... or a list of such fields",
        "oneOf": [
            {"type": ["string", "number", "boolean"], "minLength": 1},
            {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "minItems": 1},
        ],
    }
    kind = {
        "description": "what becomes of records with equal keys",
        "enum": list(KINDS),
        "default": KINDS[0],
    }
    settings = {
        "type": "object",
        "properties": {
            name: {"description": setting.meaning, "default": setting.default, **setting.type.schema}
            for name, setting in KNOWN.items()
        },
        "patternProperties": {
            f"^{TYPE_PREFIX.replace('.', '[.]')}": {
                "description": "declares a field's type, such as timestamp or decimal(9,2)",
                "type": "string",
            },
            f"^{INDEX_PREFIX.replace('.', '[.]')}[^.]*$": {
                "description": "an index for a field of each data object, such as bloom(flight)",
                **pattern(FORM),
            },
        },
        "additionalProperties": False,
    }
    pool = {
        "type": ["object", "null"],
        "properties": {
            "key": key,
            "kind": kind,
            "aggregates": {
                "description": "for aggregate pools: a function a field",
                "type": "object",
                "additionalProperties": {
                    "type": "string",
                    "anyOf": [{"enum": list(FUNCTIONS)}, {"pattern": _any_case(FUNCTIONS)}],
                },
            },
            "settings": {"$ref": "#/$defs/settings"},
        },
        "additionalProperties": False,
    }
    defaults = {
        "type": "object",
        "properties": {"key": key, "kind": kind, "settings": {"$ref": "#/$defs/settings"}},
        "additionalProperties": False,
    }
    return {
        "$schema": SCHEMA,
        "title": "Pools of a log-lake",
        "type": "object",
        "properties": {
            "defaults": defaults,
            "pools": {"type": "object", "additionalProperties": pool},
        },
        "patternProperties": {"^x-": {}},
        "required": ["pools"],
        "additionalProperties": False,
        "$defs": {"settings": settings},
    }


def _any_case(words: Iterable[str]) -> str:
    """Returns a pattern that matches these words in any case, as `lake apply` does; patterns of JSON schema have
    no flags."""
    letters = ("".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in word) for word in words)
    return f"^(?:{'|'.join(letters)})$"


def settings_table() -> Iterator[str]:
    """Yields the lines of the table of all settings, in Markdown."""
    yield "| setting | text | default | meaning |"
    yield "|---|---|---|---|"
    for name, setting in KNOWN.items():
        default = f"`{_cell(setting.default)}`" if setting.default else ""
        yield f"| `{name}` | {_cell(setting.type.form)} | {default} | {_cell(setting.meaning)} |"
    yield f"| `{TYPE_PREFIX}FIELD` | a type, such as `timestamp` or `decimal(9,2)` | | the type of a field |"
    yield (
        f"| `{INDEX_PREFIX}NAME` | a kind and a field, such as `bloom(flight)` | | an index for a field of each "
        "data object: [indexes.md](indexes.md) |"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
