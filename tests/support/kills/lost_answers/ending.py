"""Ends a drill: nothing may be under way, everything must be whole, and nothing may be left that no command
knows."""

from __future__ import annotations

import base64
import io
import json

import pyarrow.parquet as pq

from lake_core.keys.encoding import encode_value
from log_lake.stores import open_store
from tests.support.command import DONE
from tests.support.kills.lost_answers.bucket import Bucket
from tests.support.kills.lost_answers.drill import Drill


def finish(drill: Drill, bucket: Bucket) -> None:
    """Releases, compacts, vacuums and checks everything. `bucket` reads the server without the lake."""
    for pool in drill.models:
        drill.release(pool)
        drill.readers.compare(pool)
        for words in (
            ("compact", pool, "--strategy", "full"),
            ("tombstones", pool, "--at-once"),
            ("vacuum", pool, "--grace", "0s", "--every-name"),
            ("checkpoint", pool),
            ("purge", pool, "--keep", "0s"),  # checkpoints that tags kept are left below the fence
        ):
            drill.insist(*words)
        drill.readers.compare(pool)
        check_receipts(drill, pool)
    check_bytes(drill, bucket)
    said = drill.lake.run("fsck", "--data", "--older-than", "0s", "--json")
    assert said.status == 0, said.out + said.err
    found = said.records
    assert not found, f"fsck finds {found}"


def check_receipts(drill: Drill, pool: str) -> None:
    """Checks that every erasure that was begun is done, and that its receipt is true.

    A write of a receipt that arrives late may replace a newer one; then the erasure is pending again. If
    records of an erased key were loaded after the erasure, a check of its receipt finds them; `check_bytes`
    knows which records must be gone.
    """
    for each in drill.lake("erasures", pool, "--json").records:
        if each["status"] == "pending":
            drill.insist("erase", pool, "--resume", each["erasure"], "--yes", "--grace", "0s")
    for each in drill.lake("erasures", pool, "--json").records:
        assert each["status"] == "done", each
        receipt = drill.folder / f"{each['erasure']}.json"
        prefix = drill.lake("show", pool, "--json").records[0]["id"]
        name = f"{prefix}/erasures/{each['erasure']}.json"
        receipt.write_bytes(open_store(drill.uri).get(name) or b"")
        said = drill.lake.run("verify-erasure", str(receipt))
        low = base64.b64decode(json.loads(receipt.read_bytes())["low"] or "")
        later = (record for record in drill.loaded[pool] if record["id"] not in drill.models[pool].erased)
        if not any(encode_value(record["k"]) == low for record in later):
            assert said.status == DONE, said.out + said.err


def check_bytes(drill: Drill, bucket: Bucket) -> None:
    """Checks that no object of the lake holds an erased record, and that no upload is unfinished."""
    for name, data in bucket.objects():
        marks = set()
        if name.endswith(".parquet"):
            marks = set(pq.read_table(io.BytesIO(data)).column("v").to_pylist())
        text = data.decode("latin-1")
        for pool, model in drill.models.items():
            for record in drill.loaded[pool]:
                if record["id"] in model.erased:
                    assert record["v"] not in marks, (name, record)
                    assert record["v"] not in text, (name, record)
    assert not bucket.uploads(), bucket.uploads()


def show(drill: Drill) -> str:
    """Returns what happened, as JSON."""
    report = drill.report
    return json.dumps(
        {
            "kills": report.kills,
            "killed": dict(report.killed),
            "committed though killed": report.committed_though_killed,
            "statuses": dict(report.statuses),
            "trouble": dict(drill.trouble.done),
            "compared": report.compared,
            "old versions": report.old_versions,
            "longest": round(report.longest, 1),
        },
        indent=1,
    )
