"""Makes pools in memory whose records keep their types, and records of several types."""

from __future__ import annotations

import random
from pathlib import Path

from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from tests.support.zng_files import rows_of_text, zng_of

ANIMALS = """{k:3,name:"hen",legs:2(int8)}
{k:1,name:"crab",legs:10(int16),shell:true}
{k:2,ip:10.0.0.1,seen:[1,"two"]}(=sighting)
{k:5,name:0x00ff,at:{x:1.5,y:null(float64)}}
{k:4,tags:|["a","b"]|,ages:|{"a":1(uint8)}|,net:10.0.0.0/8}
{k:6,name:null(string)}
"""
"""Records of six types; the field `name` is text in some and bytes in others."""

MORE = """{k:2,ip:10.0.0.9}
{k:7,wide:1(uint64),wait:1h,empty:{}}
"""


def made(format: str, *, kind: str = "append", **settings: str) -> Pool:
    lake = Lake.create_on(MemoryStore(), author="test")
    return lake.create_pool("p", key="k", kind=kind, settings={"format": format, **settings})


def load(pool: Pool, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"{random.random()}.zng"
    path.write_bytes(zng_of(rows_of_text(text)))
    pool.branch().load([str(path)])


def shrink(pool: Pool) -> None:
    branch = pool.branch()
    compact(branch, branch.revision().references)
