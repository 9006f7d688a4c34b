"""16 processes race for each of 500 names, and one wins each: on every server, not on its word."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.contract.conftest import CLOUDS, LOCKED, empty_place
from tests.support.racers import race_processes

pytestmark = pytest.mark.slow

NAMES = {"s3": 100, "file-lock": 50, "postgresql-lock": 50}
"""Names raced for, where they are not 500: moto answers some 200 requests a second, from one Python process; it
stands behind the locks too, where each racer asks twice."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["local", *CLOUDS, *LOCKED])
def test_of_16_processes_that_race_for_a_name_one_wins(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    place = empty_place(kind, request, tmp_path)
    names = [f"race/{n:03d}" for n in range(NAMES.get(kind, 500))]
    won = race_processes(place.uri, place.options, names, processes=16, threads=1)
    assert {name: len(winners) for name, winners in won.items()} == dict.fromkeys(names, 1)
    store = place.open()
    with ThreadPoolExecutor(8) as pool:
        kept = dict(zip(names, pool.map(store.get, names), strict=True))
    assert kept == {name: won[name][0].encode() for name in names}
