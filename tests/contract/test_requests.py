"""The requests of the lake on S3, counted by a proxy: exact numbers, which no busy machine changes."""

from __future__ import annotations

import pytest

from benchmarks.requests import LOADS, counting, of_lake

pytestmark = pytest.mark.slow


def test_reads_and_writes_send_no_more_requests_than_they_did() -> None:
    with counting() as proxy:
        counted = list(of_lake(proxy))
    *reads, append = counted
    size = int(counted[0].what.split()[2].replace(",", ""))
    assert [one.requests for one in reads] == [
        4,  # scan: the footer, and three requests of at most 8 MiB
        3,
        4,  # one of four columns: the holes between its chunks are shorter than a request is worth
        2,
        1,
        LOADS,  # objects that are smaller than a hole come whole
        LOADS,
        25,  # cold open: the ten entries, two of the list of pools, and what shows the ends
    ], counted
    assert append.writes == 2  # the object, the entry
    assert append.requests <= 5  # a look for news more if the load took a quarter of a second
    assert counted[0].bytes <= 1.02 * size
    assert counted[4].bytes <= 300_000
