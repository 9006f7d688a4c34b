"""Pools written as a policy file and applied to an empty lake are the same pools, and are written the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lake_core.keys import PoolKey
from lake_core.keys.spec import KeyField
from lake_core.records.pools import PoolConfig
from log_lake.lake import Lake
from log_lake.policies.apply import carry_out
from log_lake.policies.difference import compare
from log_lake.policies.export import export
from log_lake.policies.file import parse
from log_lake.stores.memory import MemoryStore

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ODD = st.sampled_from(
    [
        *(
            "~",
            "null",
            "<<",
            "yes",
            "1e3",
            "0x1f",
            "=",
            "12:30:45",
            "2026-01-01",
            "---",
            "...",
            "%",
            "@",
            "`",
            "|",
        ),
        *(
            "- a",
            "a: b",
            "#",
            "a #b",
            "*a",
            "&a",
            "!a",
            "'",
            '"',
            "\\",
            ">",
            "{",
            "[a",
            "?",
            ":",
            "-",
            " a",
            "a ",
        ),
        *(
            "\n",
            "a\n\nb",
            "a\n b\n",
            "a\r\nb",
            "\t",
            "\x00",
            "\x85",
            "\u2028",
            "\ufeff",
            "\x7f",
            "\U0001f6eb",
        ),
    ]
)
WORDS = TEXTS | ODD
NAMES = st.text("abcdefgh._-09äß~*&!#{}[]|>?%=", min_size=1, max_size=8).filter(lambda name: name[0] != "-")
FIELDS = WORDS.filter(lambda name: name != "" and "\0" not in name)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "description": WORDS.filter(bool),
        "csv.null": WORDS.filter(bool),
        "include": WORDS.filter(bool),
        "ingest.source": WORDS.filter(bool),
        "compact.depth": st.integers(1, 99).map(str),
        "compact.ratio": st.floats(1.01, 999, allow_nan=False).map(repr),
        "history.keep": st.sampled_from(["1d", "1.5 h", "30D"]),
        "load.memory": st.sampled_from(["1", "64 k", "1GiB"]),
        "agents": st.sampled_from(["active", "paused"]),
        "upkeep.window": st.sampled_from(["22:00-06:00", "00:00-24:00,01:00-02:00 Europe/Berlin"]),
        "nokey": st.sampled_from(["fail", "accept"]),
    },
)
KEYS = st.lists(
    st.builds(KeyField, FIELDS, st.booleans()), min_size=1, max_size=3, unique_by=lambda f: f.name
).map(lambda fields: PoolKey(tuple(fields)))
AGGREGATES = st.dictionaries(FIELDS, st.sampled_from(["sum", "min", "last"]), max_size=2)


@st.composite
def configs(draw: st.DrawFn) -> PoolConfig:
    """A pool of any key, kind and settings that `lake create` and the Python API allow."""
    key, kind = draw(KEYS), draw(st.sampled_from(["append", "upsert", "aggregate"]))
    aggregates = draw(AGGREGATES) if kind == "aggregate" else {}
    outside = {name: function for name, function in aggregates.items() if name not in key.names}
    return PoolConfig("0" * 27, draw(NAMES), key, kind, draw(SETTINGS), outside)


def described(lake: Lake) -> list[tuple[str, PoolKey, str, dict[str, str], dict[str, str]]]:
    return [(one.name, one.key, one.kind, one.settings, one.aggregates) for one in lake.pools()]


def apply(lake: Lake, text: str, *, prune: bool = False) -> bool:
    """Whether there was something to do."""
    file, faults = parse(text)
    assert faults == []
    difference, faults = compare(file, lake.catalog.load().state, prune=prune)
    assert faults == []
    if not difference.is_empty:
        carry_out(lake, difference)
    return not difference.is_empty


def lake_of(pools: list[PoolConfig]) -> Lake:
    lake = Lake.create_on(MemoryStore())
    for one in pools:
        lake.create_pool(
            one.name, key=one.key, kind=one.kind, settings=one.settings, aggregates=one.aggregates
        )
    return lake


POOLS = st.lists(configs(), max_size=4, unique_by=lambda one: one.name)


@given(POOLS)
def test_what_is_exported_and_applied_to_an_empty_lake_is_exported_the_same(pools: list[PoolConfig]) -> None:
    lake = lake_of(pools)
    text = export(lake.pools())
    other = Lake.create_on(MemoryStore())
    assert apply(other, text) is bool(pools)
    assert described(other) == described(lake)
    assert export(other.pools()) == text
    assert not apply(other, text), "a second time there is nothing to do"


@given(POOLS, st.lists(SETTINGS, min_size=4, max_size=4))
def test_a_lake_of_other_pools_and_settings_becomes_what_the_file_says(
    pools: list[PoolConfig], other: list[dict[str, str]]
) -> None:
    text = export(lake_of(pools).pools())
    lake = Lake.create_on(MemoryStore())
    for one, texts in list(zip(pools, other, strict=False))[1:]:
        lake.create_pool(one.name, key=one.key, kind=one.kind, settings=texts, aggregates=one.aggregates)
    lake.create_pool("not-in-the-file", key="k")
    apply(lake, text, prune=True)
    assert export(lake.pools()) == text
    assert not apply(lake, text, prune=True)


@given(st.text(max_size=200) | st.lists(ODD | st.sampled_from(["pools:", "p", " ", "key", "k"])).map("".join))
def test_any_text_is_pools_or_faults_with_places(text: str) -> None:
    _, faults = parse(text)
    lines = (
        text.count("\n") + text.count("\r") + text.count("\x85") + text.count("\u2028") + text.count("\u2029")
    )
    assert all(1 <= fault.place.line <= lines + 2 and fault.place.column >= 1 for fault in faults)
