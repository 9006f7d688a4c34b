"""Asks index objects on the store whether a data object may have one of some values, and where; reads sketches.

An answer of NO is certain: all that was read has right checksums, and is of this rule and
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
from log_lake.indexes.layout import (
    HEADER,
    PAGE,
    IndexHeader,
    block_in,
    body_in,
    check_whole,
    page_of,
    read_header,
)
from log_lake.indexes.names import ListedIndex, index_name
from log_lake.indexes.row_groups import groups_with
from log_lake.indexes.rule import BLOOM, IndexRule
from log_lake.indexes.sketch import Sketch, decoded_sketch

AT_ONCE = 16
"""Requests to a server at a time: each waits for an answer of a few kilobytes."""

T = TypeVar("T")
R = TypeVar("R")


class IndexAnswer(enum.Enum):
    """The answer of an index about some values: no record has one, or some record may; or why there is no
    answer."""

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


@dataclass(frozen=True)
class Answered:
    """An answer, and with `groups` the row groups that may have one of the values; None: any may."""

    answer: IndexAnswer
    groups: frozenset[int] | None = None


def ask(store: Store, pool_id: str, question: IndexQuestion) -> Answered:
    """The answer of the index object.  Never raises an error of the lake."""
    look = _ask_filter if question.rule.kind == BLOOM else _ask_groups
    answer = _opened(store, pool_id, question.object_id, question.rule, lambda file: look(file, question))
    return Answered(answer) if isinstance(answer, IndexAnswer) else answer


def read_sketch(store: Store, pool_id: str, object_id: str, rule: IndexRule) -> Sketch | IndexAnswer:
    """The sketch of a data object, or why there is none.  Never raises an error of the lake."""

    def read(file: pa.NativeFile) -> Sketch:
        return decoded_sketch(body_in(file.read(), rule.digest, object_id)[1])

    return _opened(store, pool_id, object_id, rule, read)


def _opened(
    store: Store, pool_id: str, object_id: str, rule: IndexRule, read: Callable[[pa.NativeFile], R]
) -> R | IndexAnswer:
    """What `read` returns for the open index object, or why it cannot be read."""
    try:
        with store.open_input(index_name(pool_id, object_id, rule.digest)) as file:
            return read(file)
    except FileNotFoundError:
        return IndexAnswer.MISSING
    except Corrupt:
        return IndexAnswer.DAMAGED
    except (LakeError, OSError, pa.ArrowException):
        return IndexAnswer.UNREADABLE


def _ask_groups(file: pa.NativeFile, question: IndexQuestion) -> Answered:
    header, body = body_in(file.read(), question.rule.digest, question.object_id)
    groups = groups_with(body, header.values, question.numbers)
    return Answered(IndexAnswer.MAY if groups is None or groups else IndexAnswer.NO, groups)


def _ask_filter(file: pa.NativeFile, question: IndexQuestion) -> IndexAnswer:
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
    """Reads the index objects, and returns by name what is wrong with each damaged one."""
    faults = in_threads(store, lambda one: index_fault(store, one), indexes)
    return {one.info.name: fault for one, fault in zip(indexes, faults, strict=True) if fault}
