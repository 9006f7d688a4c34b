"""The names of index objects: `<pool-id>/data/index/<data object>.<digest of the rule>`, and their listing.

They lie below the folder of data objects.  So the rights to data objects are rights to their indexes, and an
erasure by an older program, which does not know indexes, reports them as foreign and does not say that it is done
(decision 477).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from lake_core import naming
from lake_core.ids import ID_LENGTH, home_of, without_home
from lake_core.store import ObjectInfo, Store

_NAME = re.compile(r"(?P<object>[0-9A-Za-z]+(?:\.[a-z]+)?)\.(?P<digest>[0-9a-f]{16})")


class ListedIndex(NamedTuple):
    """An index object on the store: the data object and the digest of the rule in its name."""

    info: ObjectInfo
    object_id: str
    digest: str


def index_folder(pool_id: str) -> str:
    """The folder of the index objects of a pool's data objects."""
    return f"{naming.data(pool_id)}/index"


def index_name(pool_id: str, object_id: str, digest: str) -> str:
    """The name of an index object; it lies in the folder in which its data object lies."""
    return f"{index_folder(home_of(object_id) or pool_id)}/{without_home(object_id)}.{digest}"


def listed_index(info: ObjectInfo) -> ListedIndex | None:
    """The index object that was listed; None if the name is not that of one."""
    match = _NAME.fullmatch(info.name.rpartition("/")[2])
    pool_id = info.name.partition("/")[0]
    if match is None or not naming.is_object(match["object"]):
        return None
    one = ListedIndex(info, match["object"], match["digest"])
    return one if info.name == index_name(pool_id, one.object_id, one.digest) else None


def list_indexes(store: Store, pool_id: str, *, since: str = "", upto: str = "") -> Iterator[ListedIndex]:
    """The index objects of data objects with ids from `since` to before `upto`, by name; "" means all.

    Raises Unavailable.
    """
    folder = index_folder(pool_id)
    for info in store.list(folder, after=f"{folder}/{since[:ID_LENGTH]}" if since else ""):
        one = listed_index(info)
        if upto and info.name[len(folder) + 1 :] >= upto:
            return  # names sort by time
        if one is not None:
            yield one


def indexes_of(store: Store, pool_id: str, objects: Collection[str]) -> list[ListedIndex]:
    """The index objects of these data objects, of all rules that there ever were.  Sends one listing.

    Raises Unavailable.
    """
    if not objects:
        return []
    named = set(objects)
    last = max(named)[:ID_LENGTH] + "~"
    return [
        one for one in list_indexes(store, pool_id, since=min(named), upto=last) if one.object_id in named
    ]
