"""The requests of the lake on S3, counted by a proxy: exact numbers, which no busy machine changes."""

from __future__ import annotations

import pytest

from benchmarks.requests import LOADS, content, counting, of_lake
from log_lake.lake import Lake
from tests.support.servers.s3 import BUCKET, s3_client

pytestmark = pytest.mark.slow


def test_reads_and_writes_send_no_more_requests_than_they_did() -> None:
    with counting() as proxy:
        counted = list(of_lake(proxy))
    _, *others = counted  # whose name has the size
    size = int(counted[0].what.split()[2].replace(",", ""))
    assert (counted[0].requests, counted[0].lists, counted[0].writes) == (
        4,
        0,
        0,
    )  # the footer, and 3 of 8 MiB
    assert {one.what: (one.requests, one.lists, one.writes) for one in others} == {
        "the same again": (3, 0, 0),
        "1 of 4 columns": (4, 0, 0),  # the holes between its chunks are shorter than a request is worth
        "1 of 4 columns, layout=scan": (6, 0, 0),  # the footer, and the chunks of 5 row groups
        "point get, layout=scan, footer known": (1, 0, 0),
        "point get": (2, 0, 0),
        "point get, footer known": (1, 0, 0),
        f"point get, {LOADS} small objects": (LOADS, 0, 0),  # objects smaller than a hole come whole
        f"point get, {LOADS} small objects, again": (0, 0, 0),  # small ranges stay in memory (decision 293)
        f"cold open, {LOADS} entries": (
            5 + LOADS,
            2,
            0,
        ),  # lake.json, and the list of pools: one listing, two entries
        "append, open writer": (3, 0, 2),  # the object, the entry, the gate
        "look for news, none": (3, 0, 0),
        "delete of a range": (3, 0, 1),  # an object, the entry, the gate
        "delete by a condition": (3, 0, 1),
        f"compaction of {LOADS} objects": (LOADS + 4, 0, 2),  # two objects were read before
        "cold open, at a checkpoint": (6, 2, 0),
        "point get, compacted": (1, 0, 0),
        "point get, compacted, again": (0, 0, 0),
        "cold open and append": (11, 3, 3),  # also the activity note, and an entry after the checkpoint
        "retention looks at 2 pools": (32, 17, 1),  # removed objects of one wait for the grace time
        "retention, 2 pools idle for an hour": (7, 3, 0),  # as many for a thousand
        "append, inlined": (2, 0, 1),  # the entry, the gate
        "scan, inlined": (0, 0, 0),  # the state has the bytes
    }, counted
    assert counted[0].bytes <= 1.02 * size
    moved = {one.what: one.bytes for one in counted}
    assert moved["1 of 4 columns, layout=scan"] <= 9_200_000, "9.0 MB are the column's; the key is not read"
    assert moved["point get"] <= 300_000


def test_the_meter_of_a_store_counts_what_a_server_is_asked_for() -> None:
    with counting() as proxy:
        lake = Lake.create(f"s3://{BUCKET}/metered", options=s3_client(proxy.url))
        branch = lake.create_pool("logs", key="k").branch()
        before = lake.store.meter.counts()

        def work() -> None:
            branch.append(content(300_000))
            branch.append(content(1_000))
            lake.pool("logs").at().to_table()
            lake.store.delete_all([])
            lake.store.delete("probe")

        seen = proxy.count("everything", work)
        counts = lake.store.meter.counts() - before
        assert (counts.requests, counts.lists, counts.writes, counts.deletes) == (
            seen.requests,
            seen.lists,
            seen.writes,
            1,
        )
        assert counts.received == seen.bytes
        assert counts.sent >= sum(one.size for one in lake.store.list(lake.pool("logs").config.id))
