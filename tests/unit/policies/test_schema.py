"""The JSON schema of policy files accepts what the lake accepts, and refuses what an editor can see is wrong."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml

from log_lake.policies.file import parse
from log_lake.policies.schema import json_schema
from log_lake.settings.settings import KNOWN

CHECK = jsonschema.Draft202012Validator(json_schema())


def accepts(text: str) -> bool:
    """Whether an editor that reads YAML as other programs do would mark nothing."""
    return bool(CHECK.is_valid(yaml.safe_load(text)))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("name", KNOWN)
def test_the_schema_accepts_every_default_and_the_empty_text(name: str) -> None:
    for text in (KNOWN[name].default, ""):
        document = {"pools": {"p": {"key": "k", "settings": {name: text}}}}
        assert CHECK.is_valid(document), text


ACCEPTED = [
    "pools: {}",
    "x-a: &a {compact.depth: 4}\npools: {p: {key: k, settings: *a}}",
    "defaults: {key: k}\npools:\n  p:\n",
    "pools: {p: {key: [a, 'b:desc'], kind: upsert}}",
    "pools: {p: {key: 1, kind: aggregate, aggregates: {n: sum}}}",
    "pools: {p: {key: 1, kind: aggregate, aggregates: {n: MAX, m: Any_Value}}}",
    "pools: {p: {key: k, settings: {compact.ratio: 1.5, compact.depth: 4, load.memory: 64000}}}",
    "pools: {p: {key: k, settings: {load.memory: 500 MB, compact.target_size: 64mib, ingest.batch_age: 1.5H}}}",
    "pools: {p: {key: k, settings: {csv.true: yes, csv.null: 'NA,', csv.decimal: ',', description: yes}}}",
    "pools: {p: {key: k, settings: {bad_records.max: 1%, bad_records: quarantine}}}",
    "pools: {p: {key: k, settings: {age_off: 'a:b: 3d', expire.by: t, expire.age: 7d, type.ts: timestamp}}}",
    "pools: {p: {key: k, settings: {upkeep.window: 22:00-06:00 Europe/Berlin, agents: paused}}}",
]
REFUSED = [
    "{}",
    "pools: []",
    "pools: {p: {key: k, colour: red}}",
    "pools: {p: {key: k, kind: new}}",
    "pools: {p: {key: k, kind: aggregate, aggregates: {n: median}}}",
    "pools: {p: {key: k, kind: aggregate, aggregates: {n: 5}}}",
    "pools: {p: {key: k, settings: {compact.dept: 4}}}",
    "pools: {p: {key: k, settings: {compact.depth: 0}}}",
    "pools: {p: {key: k, settings: {history.keep: soon}}}",
    "pools: {p: {key: k, settings: {history.keep: 30}}}",
    "pools: {p: {key: k, settings: {agents: off}}}",
    "pools: {p: {key: k, settings: {include: [a]}}}",
    "defaults: {aggregates: {n: sum}}\npools: {}",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_the_lake_takes_the_schema_takes(text: str) -> None:
    assert parse(text)[1] == []
    assert accepts(text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_schema_refuses_the_lake_refuses(text: str) -> None:
    assert not accepts(text)
    assert parse(text)[1] != []


def test_each_setting_says_its_meaning_and_its_default() -> None:
    properties: dict[str, Any] = json_schema()["$defs"]["settings"]["properties"]
    assert list(properties) == list(KNOWN)
    assert properties["history.keep"]["default"] == "30d"
    assert all(property["description"] for property in properties.values())
