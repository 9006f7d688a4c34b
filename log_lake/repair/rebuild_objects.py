"""Reads all data objects of a pool for a rebuild: the footer of each, and every record."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import msgspec

from lake_core import naming
from lake_core.errors import Corrupt, LakeError, Unavailable
from lake_core.ids import id_seconds
from lake_core.keys import KeyRange
from lake_core.records.pools import PoolConfig
from lake_core.schemas.hidden import user_fields
from lake_core.store import Store
from log_lake.objects.facts import key_of, read_content, read_facts
from log_lake.objects.read import DataObject
from log_lake.repair.check_objects import DATA_AT_ONCE, MAX_REFUSALS, batches_of
from log_lake.repair.check_pool import CheckProgress
from log_lake.repair.rebuild_candidate import Candidate
from log_lake.repair.rebuild_inlined import inlined_candidates


def read_candidates(
    store: Store, pool_id: str, progress: CheckProgress
) -> tuple[list[Candidate], dict[str, bytes]]:
    """Reads every data object of the folder whole, and every inlined one that is left in the journal.  Returns
    them, and the schemas that they have."""
    listed = ((naming.data_id(info.name), info) for info in store.list(naming.data(pool_id)))
    ours = chain(
        (
            Candidate(
                id,
                info.size,
                min(id_seconds(id), int(info.modified)),
                _appeared(store, info.name),
                info.modified,
            )
            for id, info in listed
            if id and info.name == naming.data_object(pool_id, id)
        ),
        inlined_candidates(store, pool_id),
    )
    candidates: list[Candidate] = []
    schemas: dict[str, bytes] = {}
    refused = 0
    with ThreadPoolExecutor(DATA_AT_ONCE) as threads:
        for batch in batches_of(ours, DATA_AT_ONCE * 8):
            for candidate, schema, error in threads.map(lambda one: _read(store, pool_id, one), batch):
                candidates.append(candidate)
                if schema is not None:
                    schemas.setdefault(candidate.schema, schema)
                if isinstance(error, Unavailable):
                    refused += 1
                    if refused > MAX_REFUSALS:
                        raise error
            progress("objects", len(batch))
    return candidates, schemas


def _read(
    store: Store, pool_id: str, candidate: Candidate
) -> tuple[Candidate, bytes | None, LakeError | None]:
    try:
        with DataObject.at(store, candidate.located, pool_id=pool_id) as data:
            facts = read_facts(data)
            footer = facts.metadata
            candidate = msgspec.structs.replace(
                candidate,
                transaction_id=footer.origin.transaction_id,
                inputs=footer.origin.inputs,
                key=footer.key,
                sub_pool=footer.sub_pool,
                schema=footer.schema,
                records=footer.records,
                low=footer.low,
                high=footer.high,
                partition=KeyRange(*footer.partition),
                siblings=footer.siblings,
                first_seq=footer.first_seq,
                last_seq=footer.last_seq,
            )
            if facts.schema_id != footer.schema:
                raise Corrupt(f"{data.name}: its fields are not those of the schema that its footer names")
            content = read_content(data, key=key_of(footer), cut=True)
            schema = user_fields(data.written_schema).serialize().to_pybytes()
            fault = "; ".join(content.faults)
            return (
                msgspec.structs.replace(
                    candidate, columns=content.columns, sequences=content.sequences, fault=fault
                ),
                schema,
                None,
            )
    except LakeError as error:
        refused = isinstance(error, Unavailable)
        return msgspec.structs.replace(candidate, fault=str(error), is_refused=refused), None, error


def _appeared(store: Store, name: str) -> int:
    """Returns when the store got the object's file, in nanoseconds; 0 if the store does not say."""
    path = store.local_path(name)
    try:
        return os.stat(path).st_mtime_ns if path is not None else 0
    except OSError:
        return 0


def with_key(candidate: Candidate, config: PoolConfig) -> Candidate:
    """Returns the object, with a fault if it is sorted by another key: then it cannot be merged with the
    others."""
    key = str(config.key_of(candidate.sub_pool))
    if not candidate.is_known or candidate.fault or candidate.key == key:
        return candidate
    return msgspec.structs.replace(candidate, fault=f"it is sorted by {candidate.key}, not by {key}")
