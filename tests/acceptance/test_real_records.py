"""Every record of real data comes back equal, in key order, from `lake scan` and from `lake query`."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Command, without_nulls

pytestmark = pytest.mark.slow

FLIGHTS = 336_776


def records_of(log: Path) -> list[dict[str, Any]]:
    with gzip.open(log, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def counted(records: Iterable[dict[str, Any]]) -> Counter[str]:
    """The records as a multiset; numbers keep their kind, null fields are none."""
    return Counter(json.dumps(without_nulls(r), sort_keys=True) for r in records)


def in_order(records: list[dict[str, Any]], *key: str) -> bool:
    """Whether the key never falls; null sorts first."""
    keys = [[(r.get(name) is not None, r.get(name)) for name in key] for r in records]
    return all(a <= b for a, b in pairwise(keys))


def test_all_zeek_logs_in_one_pool(lake: Command, zeek: list[Path]) -> None:
    given = [record for log in zeek for record in records_of(log)]
    lake.pool("zeek", key="ts")
    done = lake.load("zeek", *map(str, zeek))
    assert (done["records"], done["nokey"], done["rejected"]) == (len(given), 0, 0)
    assert len(lake.history("zeek")) == 1
    scanned = lake.scan("zeek")
    assert in_order(scanned, "ts")
    assert counted(scanned) == counted(given)
    assert lake.query('select * from "zeek"') == scanned


def test_every_zeek_log_in_a_pool_of_its_own(lake: Command, zeek: list[Path]) -> None:
    for log in zeek:
        name = log.name.partition(".")[0]
        given = records_of(log)
        lake.pool(name, key="ts")
        assert lake.load(name, str(log))["records"] == len(given)
        scanned = lake.scan(name)
        assert in_order(scanned, "ts"), name
        assert counted(scanned) == counted(given), name
        assert lake.query(f'select * from "{name}"') == scanned, name


def test_zeek_logs_that_come_one_by_one_are_merged(lake: Command, zeek: list[Path]) -> None:
    lake.pool("zeek", key="ts")
    for log in reversed(zeek):
        lake.load("zeek", str(log))
    scanned = lake.scan("zeek")
    assert in_order(scanned, "ts")
    assert counted(scanned) == counted(record for log in zeek for record in records_of(log))
    assert lake.query('select * from "zeek"') == scanned


def test_a_year_of_flights_comes_back_record_by_record_with_the_types_of_its_columns(
    lake: Command, flights: Path
) -> None:
    texts = ("carrier", "tailnum", "origin", "dest", "time_hour")
    with flights.open(encoding="utf-8", newline="") as file:
        given = [
            {name: value if name in texts else int(value) for name, value in row.items() if value != "NA"}
            for row in csv.DictReader(file)
        ]
    assert len(given) == FLIGHTS
    lake.pool("flights", key="time_hour,carrier", csv_null="NA")
    assert lake.load("flights", str(flights))["records"] == FLIGHTS
    fields = lake("show", "flights", "--json").records[0]["fields"]
    assert {name: kind for name, kind in fields.items() if name in texts} == dict.fromkeys(
        texts, "string"
    ) | {"time_hour": "timestamp"}
    assert {kind for name, kind in fields.items() if name not in texts} == {"bigint"}
    scanned = lake.scan("flights")
    assert in_order(scanned, "time_hour", "carrier")
    assert counted(scanned) == counted(given)
    assert lake.query('select * from "flights"') == scanned
