"""Asks index objects on the store whether a data object may have one of some values.

An answer of NO is certain: the header and the page that were read have right checksums, and are of this rule and
data object.  Whatever else happens, the answer is that the data object must be read, and why.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from lake_core.errors import Corrupt, LakeError
from lake_core.naming import LAKE_FILE
from lake_core.store import Store
from log_lake.indexes.bloom import block_of, may_have
from log_lake.indexes.layout import HEADER, PAGE, IndexHeader, block_in, check_whole, page_of, read_header
from log_lake.indexes.names import ListedIndex, index_name
from log_lake.indexes.rule import IndexRule

AT_ONCE = 16
"""Requests to a server at a time: each waits for an answer of a few kilobytes."""

T = TypeVar("T")
R = TypeVar("R")


class IndexAnswer(enum.Enum):
    """What an index says of values: no record has one, some may; or why it says nothing."""

    NO = "no record has such a value"
    MAY = "some record may have such a value"
    MISSING = "the index is missing"
    DAMAGED = "the index is damaged, or of another object"
    UNREADABLE = "the index cannot be read"

    @property
    def is_silent(self) -> bool:
        """Whether the index said nothing, so that its object was read."""
        return self not in (IndexAnswer.NO, IndexAnswer.MAY)


@dataclass(frozen=True)
class IndexQuestion:
    """Whether a data object may have one of the numbers in the field of a rule."""

    object_id: str
    rule: IndexRule
    numbers: tuple[int, ...]


def ask(store: Store, pool_id: str, question: IndexQuestion) -> IndexAnswer:
    """The answer of the index object.  Never raises an error of the lake."""
    name = index_name(pool_id, question.object_id, question.rule.digest)
    try:
        with store.open_input(name) as file:
            return _ask(file, question)
    except FileNotFoundError:
        return IndexAnswer.MISSING
    except Corrupt:
        return IndexAnswer.DAMAGED
    except (LakeError, OSError, pa.ArrowException):
        return IndexAnswer.UNREADABLE


def _ask(file: pa.NativeFile, question: IndexQuestion) -> IndexAnswer:
    begin = file.read(PAGE)  # with the header of a small index comes all of it
    header = read_header(begin[:HEADER], question.rule.digest, question.object_id)
    pages: dict[int, bytes] = {}
    for number in question.numbers:
        if may_have(_block(file, header, begin, pages, block_of(number, header.blocks)), number):
            return IndexAnswer.MAY
    return IndexAnswer.NO


def _block(
    file: pa.NativeFile, header: IndexHeader, begin: bytes, pages: dict[int, bytes], block: int
) -> bytes:
    place = page_of(header, block)
    page = pages.get(place.number)
    if page is None:
        if place.end <= len(begin):
            page = begin[place.begin : place.end]
        else:
            file.seek(place.begin)
            page = file.read(place.end - place.begin)
        pages[place.number] = page
    return block_in(page, place, header, block)


def index_fault(store: Store, index: ListedIndex) -> str:
    """What is wrong with an index object, which is read whole; "" if it is right or gone."""
    try:
        data = store.get(index.info.name)
        if data is not None:
            check_whole(data, index.digest, index.object_id)
    except LakeError as error:
        return str(error)
    return ""


def in_threads(store: Store, do: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The results of `do`, in order; if the store is on a server, several at a time."""
    if len(items) < 2 or store.local_path(LAKE_FILE) is not None:
        return [do(item) for item in items]
    with ThreadPoolExecutor(min(AT_ONCE, len(items))) as threads:
        return list(threads.map(do, items))


def faults_of(store: Store, indexes: Sequence[ListedIndex]) -> dict[str, str]:
    """What is wrong with those of the index objects that are damaged, by name.  Reads all of them."""
    faults = in_threads(store, lambda one: index_fault(store, one), indexes)
    return {one.info.name: fault for one, fault in zip(indexes, faults, strict=True) if fault}
