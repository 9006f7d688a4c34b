"""Chooses the caches of this process's stores, from the environment.

    LAKE_MEMORY_CACHE=64MiB          bytes of ranges that all stores hold in memory (`memory_cache`); 0: none
    LAKE_CACHE=/path,20GiB[,1d]      a folder of this machine, its size, how long a file is used (`disk_cache`)

Only stores on a server have caches: reading a file of this machine needs none.  Called by `opening`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lake_core.errors import InvalidInput
from lake_core.values.units import unit_bytes, unit_seconds
from log_lake.stores.disk_cache import DiskCache
from log_lake.stores.memory_cache import ROOM, Memory
from log_lake.stores.ranges import NO_CACHE, RangeCache

MEMORY, DISK = "LAKE_MEMORY_CACHE", "LAKE_CACHE"

AGE = 86_400.0
"""How many seconds a file in the folder is used, unless the variable says otherwise."""

LEAST = 1 << 20
"""The smallest size of the folder that is accepted, in bytes."""

_SIZE = r"(\d{1,15})\s*(B|[KMGT]i?B)?"
_DISK = re.compile(rf"(/[^\0]*?)\s*,\s*{_SIZE}(?:\s*,\s*(\d{{1,9}})([smhd]))?")


class Folder(NamedTuple):
    """A folder that caches ranges of objects: its size in bytes, and the age in seconds up to which a file in it
    is used."""

    path: Path
    room: int
    age: float


def parse_folder(text: str) -> Folder:
    """Reads the value of LAKE_CACHE.  Raises InvalidInput."""
    match = _DISK.fullmatch(text.strip())
    room = int(match[2]) * unit_bytes(match[3]) if match else 0
    age = float(match[4]) * unit_seconds(match[5]) if match and match[4] else AGE
    if match is None or room < LEAST or not age:
        raise InvalidInput(
            f"{DISK}={text!r}: write an absolute path, a size of at least 1MiB and, if wanted, an age above 0, as "
            "in /var/cache/lake,20GiB or /var/cache/lake,20GiB,6h"
        )
    return Folder(Path(match[1]), room, age)


def parse_room(text: str) -> int:
    """Reads the value of LAKE_MEMORY_CACHE, in bytes; 0 means no cache.  Raises InvalidInput."""
    match = re.fullmatch(_SIZE, text.strip())
    if match is None:
        raise InvalidInput(f"{MEMORY}={text!r}: write a size such as 64MiB, or 0 for none")
    return int(match[1]) * unit_bytes(match[2])


@cache
def _memory(room: int) -> Memory:
    """Returns the memory cache of this process."""
    return Memory(room)


def given_cache(uri: str, options: Mapping[str, Any]) -> RangeCache:
    """Returns the cache that the environment sets for a store on a server.  Raises InvalidInput."""
    disk: RangeCache = NO_CACHE
    if text := os.environ.get(DISK, ""):
        folder = parse_folder(text)
        client = options.get("client_kwargs") or {}
        endpoint = options.get("endpoint_url") or client.get("endpoint_url") or ""
        store = f"{endpoint}\0{uri.rstrip('/')}"
        disk = DiskCache(folder.path, room=folder.room, age=folder.age, store=store, clock=time.time)
    text = os.environ.get(MEMORY, "")
    room = parse_room(text) if text else ROOM
    return _memory(room).cache(disk) if room else disk
