"""Reads the objects of references and finds their faults.  This is the slow part of `lake fsck`.

The footer of an object takes two small requests, its data a read of the whole object.  `check_objects` checks
some references, here or in a Spark task; `in_threads` gives batches of them to threads, a bounded number at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from lake_core import naming
from lake_core.errors import Corrupt, InvalidInput, ObjectMissing, Unavailable
from lake_core.history import Reference
from lake_core.phrases import counted
from lake_core.records.pools import PoolConfig
from lake_core.store import Store
from log_lake.indexes.cluster import stated_bucket
from log_lake.objects.facts import Content, read_content, read_facts
from log_lake.objects.located import Located
from log_lake.objects.read import DataObject
from log_lake.repair.check_references import faults_of, faults_of_content, shows_whole
from log_lake.repair.finding import Finding, finding

T = TypeVar("T")

FOOTERS_AT_ONCE = 16
"""Objects whose footers are read in parallel."""

DATA_AT_ONCE = 4
"""Objects whose records are read in parallel; each takes a batch of records in memory, and a core to decode it."""

MAX_REFUSALS = 16
"""Objects of one batch that the store may refuse to read.  If it refuses more, the cause is the store, not the
objects."""

CheckObjects = Callable[[PoolConfig, Iterable[Sequence[Reference]]], Iterator[Finding]]
"""A function that checks batches of references of a pool, in this process or elsewhere."""


def check_objects(
    store: Store,
    config: PoolConfig,
    references: Sequence[Reference],
    *,
    data: bool,
    content: bool = False,
) -> list[Finding]:
    """Returns the faults of the references' objects, and of the references themselves.

    `data`: also reads every record.  `content`: compares the records' sums with those of the references, too.
    Raises Unavailable if the store refuses many objects.
    """
    findings: list[Finding] = []
    refusals = 0
    for reference in references:
        name = naming.data_object(config.id, reference.object)

        def wrong(kind: str, what: str, of: Reference = reference, where: str = name) -> None:
            findings.append(finding(kind, pool=config.name, where=where, what=what, id=of.object))

        try:
            for kind, what in _faults(store, config, reference, data=data, content=content):
                wrong(kind, what)
        except ObjectMissing:
            wrong(
                "object_missing",
                f"{counted(reference.records, 'record')} cannot be read: the object is not there",
            )
        except Corrupt as error:
            wrong("object_damaged", str(error))
        except Unavailable as error:
            refusals += 1
            if refusals > MAX_REFUSALS:
                raise
            wrong("object_unreadable", str(error))
    return findings


def _faults(
    store: Store, config: PoolConfig, reference: Reference, *, data: bool, content: bool
) -> Iterator[tuple[str, str]]:
    key = config.key_of(reference.sub_pool)
    located = Located(reference.object, data=reference.data)  # its size is compared below
    with DataObject.at(store, located, pool_id=config.id) as opened:
        facts = read_facts(opened)
        faults = list(faults_of(reference, facts, key=key))
        yield from faults
        if not data or facts.metadata.key != str(key):  # a key that the records lack cannot be compared
            return
        try:
            stated = stated_bucket(reference.columns)
            records = read_content(opened, key=key, sums=content and reference.content != b"", stated=stated)
            shown: Content | None = None
            if not shows_whole(reference, facts):
                shown = read_content(opened, key=key, key_range=reference.key_range)
        except InvalidInput as error:  # a value that the key cannot order
            raise Corrupt(f"{opened.name}: {error}") from error
        yield from faults_of_content(reference, records, shown=shown)


def in_threads(store: Store, *, data: bool, content: bool = False) -> CheckObjects:
    """Returns a `CheckObjects` that works in threads of this process."""
    most = DATA_AT_ONCE if data else FOOTERS_AT_ONCE

    def check(config: PoolConfig, batches: Iterable[Sequence[Reference]]) -> Iterator[Finding]:
        def one(reference: Reference) -> list[Finding]:
            return check_objects(store, config, [reference], data=data, content=content)

        with ThreadPoolExecutor(most) as threads:
            for batch in batches:
                refusals = 0
                for findings in threads.map(one, batch):
                    yield from findings
                    refusals += sum(f.kind == "object_unreadable" for f in findings)
                    if refusals > MAX_REFUSALS:
                        raise Unavailable(f"{store.uri}: {findings[0].what}")

    return check


def batches_of(items: Iterable[T], count: int) -> Iterator[list[T]]:
    """Yields the items in lists of at most `count`."""
    left = iter(items)
    while batch := list(islice(left, count)):  # bounded by the items
        yield batch
