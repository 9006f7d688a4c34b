"""A policy file: what it says of pools, and everything that can be wrong with it, each with its place."""

from __future__ import annotations

import pytest

from lake_core.keys import PoolKey
from lake_core.keys.spec import KeyField
from log_lake.policies.file import PolicyFile, parse
from log_lake.policies.limits import PolicyLimits

TIGHT = PolicyLimits(max_nodes=200, max_depth=6)


def read(text: str) -> PolicyFile:
    """The pools of a text without faults."""
    file, faults = parse(text)
    assert faults == []
    return file


def faults_of(text: str, limits: PolicyLimits = TIGHT) -> list[str]:
    """What is wrong, as LINE:COLUMN and the message."""
    return [f"{f.place.line}:{f.place.column}: {f.message}" for f in parse(text, limits=limits)[1]]


def test_a_pool_has_its_own_settings_before_those_of_the_defaults() -> None:
    file = read(
        """
        defaults:
          key: ts:desc
          kind: upsert
          settings: {history.keep: 90d, compact.depth: 4, vacuum.grace: 14d}
        pools:
          plain:
          own:
            key: host, ts
            kind: aggregate
            aggregates: {bytes: sum, seen: MAX}
            settings: {compact.depth: 16, vacuum.grace: '', type.bytes: bigint}
        """
    )
    plain, own = file.pools["plain"], file.pools["own"]
    assert (plain.key, plain.kind) == (PoolKey.parse("ts:desc"), "upsert")
    assert plain.settings == {"history.keep": "90d", "compact.depth": "4", "vacuum.grace": "14d"}
    assert (own.key, own.kind) == (PoolKey.parse("host,ts"), "aggregate")
    assert own.aggregates == {"bytes": "sum", "seen": "max"}
    assert own.settings == {"history.keep": "90d", "compact.depth": "16", "type.bytes": "bigint"}


@pytest.mark.parametrize(
    "text", ["no", "1.50", "0x10", "1e3", "2026-01-01", "off", "'null'", '"~"', "007", "12:30:45", "!a,b"]
)
def test_a_text_is_what_was_written_whatever_other_programs_make_of_it(text: str) -> None:
    quoted = text if text[0] != "!" else f"'{text}'"
    file = read(f"pools: {{p: {{key: k, settings: {{csv.null: {quoted}}}}}}}")
    assert file.pools["p"].settings == {"csv.null": text.strip("'\"")}


def test_anchors_aliases_and_merge_keys_work_and_what_stands_there_wins() -> None:
    file = read(
        """
        x-shared: &shared {compact.depth: 4, history.keep: 90d}
        x-more: &more {compact.depth: 32, vacuum.grace: 9d}
        pools:
          a: &a {key: k, settings: {<<: *shared, history.keep: 5d}}
          b: *a
          c: {<<: *a, kind: upsert, settings: {<<: [*shared, *more]}}
        """
    )
    assert file.pools["a"].settings == {"compact.depth": "4", "history.keep": "5d"}
    assert file.pools["b"].settings == file.pools["a"].settings
    assert file.pools["c"].kind == "upsert"
    assert file.pools["c"].settings == {"compact.depth": "4", "history.keep": "90d", "vacuum.grace": "9d"}


def test_a_quoted_merge_key_is_an_ordinary_name() -> None:
    file = read("pools: {p: {key: k, kind: aggregate, aggregates: {'<<': sum}}}")
    assert file.pools["p"].aggregates == {"<<": "sum"}


def test_a_list_names_fields_that_a_text_cannot() -> None:
    file = read("pools: {p: {key: ['a,b', 'x:desc:asc', 'y:desc']}}")
    assert file.pools["p"].key == PoolKey((KeyField("a,b"), KeyField("x:desc"), KeyField("y", True)))


def test_no_pools_are_written_as_an_empty_mapping() -> None:
    assert read("pools: {}").pools == {}


def test_all_faults_of_a_file_are_named_in_the_order_of_the_text() -> None:
    text = "pools:\n  a: {kind: new}\n  b: {key: k, settings: {compact.dept: 3, history.keep: soon}}\n"
    text += "  c@d: {key: k}\n"
    assert faults_of(text) == [
        "2:3: pool 'a' has no key; write key: FIELD[:desc],... in the pool or in the defaults",
        "2:13: pool 'a': kind must be append, upsert or aggregate (got 'new')",
        "3:26: unknown setting 'compact.dept'; did you mean 'compact.depth'? (lake apply --schema lists them)",
        "3:57: setting history.keep=soon: use a duration such as 30s, 10m, 6h, 7d",
        "4:3: pool name 'c@d': a name cannot have '@'; leave them out",
    ]


def test_what_no_pool_can_use_in_the_defaults_is_said_once() -> None:
    text = "defaults: {settings: {history.keep: soon, color: red}}\npools: {a: {key: k}, b: {key: k}}"
    assert [fault.partition(": ")[2][:30] for fault in faults_of(text)] == [
        "setting history.keep=soon: use",
        "unknown setting 'color'; there",
    ]


def test_what_one_pool_cannot_use_of_the_defaults_names_the_pool() -> None:
    text = "defaults: {settings: {age_off: 'ts:3d'}}\npools: {a: {key: k}, b: {key: k, kind: aggregate}}"
    (fault,) = faults_of(text)
    assert fault.startswith("1:32: pool 'b': setting age_off=ts:3d: in an aggregate pool")


def test_settings_that_exclude_each_other_name_the_pool() -> None:
    (fault,) = faults_of("pools: {p: {key: k, settings: {expire.age: 90d}}}")
    assert fault.startswith(
        "1:32: pool 'p': setting expire.age=90d: without expire.by the age is that of the load"
    )
    assert faults_of("pools: {p: {key: k, settings: {expire.age: 90d, history.keep: 90d}}}") == []


BOMB = "x-a: &a [x,x,x,x,x,x,x,x]\nx-b: &b [*a,*a,*a,*a,*a,*a]\nx-c: &c [*b,*b,*b,*b,*b,*b]\npools: {}\n"
MERGED = ", ".join(f"k{i}: v" for i in range(30))
MERGE_BOMB = f"x-a: &a {{{MERGED}}}\npools:\n" + "".join(f"  p{i}: {{<<: *a}}\n" for i in range(30))

SETTINGS = ", ".join(f"type.f{i}: int" for i in range(20))
CROSSED = f"defaults: {{key: k, settings: {{{SETTINGS}}}}}\npools:\n" + "".join(
    f"  p{i}:\n" for i in range(30)
)

HOSTILE = {
    "empty": ("", "1:1: the file is empty"),
    "only a comment": ("# nothing\n", "1:1: the file is empty"),
    "a text": ("pools", "1:1: a policy file must be a mapping with defaults and pools"),
    "a list": ("- pools", "1:1: a policy file must be a mapping"),
    "no pools": ("defaults: {}\n", "1:1: the file names no pools"),
    "pools of nothing": ("pools:\n", "1:1: pools must be a mapping of names; write pools: {}"),
    "pools as a list": ("pools: [a, b]\n", "1:8: pools must be a mapping of names"),
    "an unknown section": (
        "pool: {}\npools: {}\n",
        "1:1: a policy file: unknown name 'pool'; did you mean 'pools'?",
    ),
    "an object of Python": (
        "pools: !!python/object/apply:os.system ['id']\n",
        "1:8: the tag !!python/object/apply",
    ),
    "a tag of YAML": ("pools: {p: {key: !!str k}}\n", "1:18: the tag !!str is not allowed; remove it"),
    "a tag of its own": ("pools: {p: {key: !secret k}}\n", "1:18: the tag !secret is not allowed"),
    "two documents": ("pools: {}\n---\npools: {}\n", "2:1: a second document begins here"),
    "an equal key": ("pools:\n  a: {key: k}\n  a: {key: l}\n", "3:3: 'a' is there twice (first in line 2)"),
    "an equal section": ("pools: {}\npools: {}\n", "2:1: 'pools' is there twice"),
    "an equal setting": (
        "pools: {p: {key: k, settings: {agents: active, agents: paused}}}",
        "1:48: 'agents' is there twice (first in line 1); remove one",
    ),
    "a key that is a list": ("pools: {? [a] : {key: k}}\n", "1:11: a key must be a text; quote it"),
    "an unknown alias": ("pools: {p: *base}\n", "1:12: the alias *base has no anchor before it"),
    "an alias in its own anchor": ("pools: &p {q: *p}\n", "1:15: the alias *p has no anchor before it"),
    "two merges": (
        "pools: {p: &p {key: k}, q: {<<: *p, <<: *p}}\n",
        "1:37: << is there twice; write << : [*ONE, *OTHER]",
    ),
    "a merge of a text": ("pools: {p: {<<: a, key: k}}\n", "1:13: << merges mappings only"),
    "many aliases": (BOMB, "aliases written out; split it into several"),
    "many settings by defaults": (
        CROSSED,
        "13:3: the pools up to here have more than 200 settings, with those",
    ),
    "many merges": (MERGE_BOMB, "aliases written out; split it into several"),
    "deep lists": ("pools: " + "[" * 500, "1:13: the text is nested deeper than 6; write it flat"),
    "lists deeper than YAML goes": (
        "pools: " + "[" * 5000,
        "nest",
    ),  # PyYAML refuses 1,000, older ones do not
    "deep blocks": ("".join("  " * i + "a:\n" for i in range(40)), "the text is nested deeper than 6"),
    "a tab": (
        "pools:\n\tp: {key: k}\n",
        "2:1: this is not YAML: found character that cannot start any token",
    ),
    "an open quote": ("pools: {p: {key: 'k}}\n", "this is not YAML: found unexpected end of stream"),
    "an open brace": ("pools: {p: {key: k}\n", "this is not YAML: "),
    "a control character": (
        "pools: {p: {key: \x07}}\n",
        "1:18: this is not YAML: control characters are not allowed",
    ),
    "a nul": ("pools: {\0}\n", "this is not YAML: "),
    "a pool of a text": (
        "pools: {p: yes}\n",
        "1:12: pool 'p' must be a mapping with key, kind, aggregates and settings",
    ),
    "a null pool": ("pools: {p: ~}\n", "1:12: pool 'p' must be a mapping"),
    "a pool without a name": ("pools: {'': {key: k}}\n", "1:9: pool name ''"),
    "a pool of the lake's own": (
        "pools: {$jobs: {key: k}}\n",
        "1:9: pool name '$jobs': the lake makes this pool",
    ),
    "a pool like an option": ("pools: {-p: {key: k}}\n", "1:9: pool name '-p'"),
    "a key of nothing": ("pools: {p: {key: }}\n", "a key must be a text, such as ts:desc,host"),
    "a key of a mapping": ("pools: {p: {key: {k: desc}}}\n", "1:18: pool 'p': a key must be a text"),
    "a key with an empty field": (
        "pools: {p: {key: 'a,,b'}}\n",
        "1:18: pool 'p': pool key 'a,,b' has an empty field",
    ),
    "a key with another order": (
        "pools: {p: {key: 'k,ts:sideways'}}\n",
        "1:18: pool 'p': key field 'ts:sideways': unknown order 'sideways'; use asc or desc",
    ),
    "a list with another order": (
        "pools: {p: {key: [k, 'ts:sideways']}}\n",
        "1:18: pool 'p': key field 'ts:sideways': unknown order 'sideways'; use asc or desc",
    ),
    "a key with a field twice": (
        "pools: {p: {key: 'a,a'}}\n",
        "1:18: pool 'p': pool key a,a: name each field once",
    ),
    "a kind of a list": (
        "pools: {p: {key: k, kind: [append]}}\n",
        "1:27: pool 'p': kind must be append, upsert or",
    ),
    "aggregates of an append pool": (
        "pools: {p: {key: k, aggregates: {n: sum}}}\n",
        "1:33: pool 'p': aggregates are for pools of kind aggregate",
    ),
    "an unknown function": (
        "pools: {p: {key: k, kind: aggregate, aggregates: {n: median}}}\n",
        "pool 'p': aggregate n=median: use sum, min, max",
    ),
    "settings of a list": (
        "pools: {p: {key: k, settings: [agents]}}\n",
        "1:31: settings of pool 'p' must be a mapping, a line each, such as history.keep: 30d",
    ),
    "a setting of a list": (
        "pools: {p: {key: k, settings: {include: [a, b]}}}\n",
        "1:41: settings of pool 'p': include must be one text (got a collection)",
    ),
    "a setting of nothing": (
        "pools:\n  p:\n    key: k\n    settings:\n      agents:\n",
        "5:7: settings of pool 'p': agents has no value; write '' for the default, or quote the word",
    ),
    "a setting of null": (
        "pools: {p: {key: k, settings: {csv.null: null}}}\n",
        "1:42: settings of pool 'p': csv.null has no value; write '' for the default, or quote the word",
    ),
    "a setting outside of settings": (
        "pools: {p: {key: k, agents: paused}}\n",
        "1:21: pool 'p': agents is a setting; write it below settings:",
    ),
    "an aggregate in the defaults": (
        "defaults: {aggregates: {n: sum}}\npools: {}\n",
        "1:12: defaults: unknown name 'aggregates'",
    ),
    "a key that no record can have": (
        'pools: {p: {key: "a\\0b"}}\n',
        "1:18: pool 'p': field 'a\\x00b': a name cannot have the character NUL",
    ),
    "a key that is reserved": (
        "pools: {p: {key: _seq}}\n",
        "1:18: pool 'p': field '_seq': the name is reserved",
    ),
    "half a character": (r'pools: {p: {key: "\ud800"}}' + "\n", "1:2"),
    "a type that no field has": (
        "pools: {p: {key: k, settings: {type.a: blob}}}\n",
        "1:40: type 'blob' of field 'a' is unknown",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_with_a_place(name: str) -> None:
    text, message = HOSTILE[name]
    faults = faults_of(text)
    assert faults
    assert any(message in fault for fault in faults), faults


def test_the_places_of_unicode_text_count_letters() -> None:
    assert faults_of("# ünïcödé 🛫\npools: {pööl🛫: {key: k, kind: x}}\n") == [
        "2:31: pool 'pööl🛫': kind must be append, upsert or aggregate (got 'x')"
    ]
