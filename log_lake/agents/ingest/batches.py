"""Commits one batch of source files exactly once: the good files are loaded, the bad ones refused.

The agent commits the good files of a batch and parks the bad ones.  First it loads all files together
(`load_files`). If one is refused, it builds every file on its own.  This second pass shows which files are bad,
and the good ones become one transaction.  If even that is refused (two files disagree about the key), it commits
the files one after another.

If it is killed at any point and run again, it still ingests every file once: a batch is committed under a token
made of its files, and a transaction records the files that it ingested.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from lake_core.errors import Conflict, InvalidInput, NotFound, without_secrets
from lake_core.phrases import counted
from lake_core.store import address_of
from log_lake.agents.ingest.plan import FilePart, IngestBatch, Unit
from log_lake.agents.load_files import LoadWork, build_unit, check_unchanged, load_files, with_lost
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.lake.loads import lease_of
from log_lake.lake.pool import Pool
from log_lake.lake.results import LoadResult, PendingLoad
from log_lake.loading.misfits import summed
from log_lake.loading.source_files import SourceFile
from log_lake.loading.sources import find_files
from log_lake.objects.write import WrittenObject
from log_lake.workers import Worker, Workers

log = logging.getLogger(__name__)

Refused = tuple[SourceFile, str]
"""A file that cannot be loaded, and the reason."""


@dataclass(frozen=True)
class BatchResult:
    """What came of a batch: what was loaded, and which files were refused."""

    result: LoadResult
    refused: tuple[Refused, ...] = ()


def ingest_waiting(
    workers: Workers, lake: Lake, pool: Pool, files: list[SourceFile], *, branch: str, bulk: bool = False
) -> BatchResult:
    """Like `ingest_or_park`, but without files that have changed since they were found."""
    try:
        return ingest_or_park(workers, lake, pool.name, files, branch=branch, bulk=bulk)
    except (Conflict, NotFound) as error:
        waiting = [file for file in files if _waits(pool, branch, file)]
        if len(waiting) == len(files):
            raise
        log.warning(
            "%s: %s; %s for the next run",
            pool.name,
            error,
            counted(len(files) - len(waiting), "file waits", "files wait"),
        )
    return (
        ingest_or_park(workers, lake, pool.name, waiting, branch=branch, bulk=bulk)
        if waiting
        else BatchResult(LoadResult(None))
    )


def _waits(pool: Pool, branch: str, file: SourceFile) -> bool:
    """Whether the file still exists unchanged, and is not ingested."""
    if pool.at(branch).state.ingested(branch, file.uri) == file.source:
        return False
    try:
        return [there.source for there in find_files([file.uri], access=address_of(pool.store))] == [
            file.source
        ]
    except NotFound:
        return False


def ingest_or_park(
    workers: Workers, lake: Lake, pool_name: str, files: list[SourceFile], *, branch: str, bulk: bool = False
) -> BatchResult:
    """Commits the good files of a batch, and parks the others.  Raises what `load_files` raises, except
    InvalidInput."""
    try:
        return BatchResult(_load(workers, lake, pool_name, files, branch=branch, bulk=bulk))
    except InvalidInput as error:
        if len(files) == 1:
            return BatchResult(LoadResult(None), ((files[0], _why(str(error), files[0])),))
        log.warning("%s: %s; building each of %s on its own", pool_name, error, counted(len(files), "file"))
    target = lake.pool(pool_name).branch(branch)
    job = target.begin_load()
    assert not isinstance(job, LoadResult)  # without a token there is no first outcome
    with lease_of(target, job, why="ingest"):
        built, refused = _build_apart(workers, lake, target, job, files)
        good = [file for file in files if file.uri in built]
        try:
            if bulk and good:  # what was built on its own has keys of all ranges
                result = _load(workers, lake, pool_name, good, branch=branch, bulk=True)
            else:
                result = (
                    _commit(lake, pool_name, job, good, built, branch=branch) if good else LoadResult(None)
                )
            return BatchResult(result, tuple(refused))
        except InvalidInput as error:
            log.warning(
                "%s: %s; committing %s one after another", pool_name, error, counted(len(good), "file")
            )
    results = []
    for file in good:
        try:
            results.append(_load(workers, lake, pool_name, [file], branch=branch, bulk=bulk))
        except InvalidInput as error:
            refused.append((file, _why(str(error), file)))
    return BatchResult(summed_results(results), tuple(refused))


def _load(
    workers: Workers, lake: Lake, pool_name: str, files: list[SourceFile], *, branch: str, bulk: bool = False
) -> LoadResult:
    return load_files(
        workers,
        lake,
        pool_name=pool_name,
        files=files,
        branch=branch,
        format=lake.pool(pool_name).settings["ingest.format"],
        token=IngestBatch(tuple(files)).token(branch),
        message=f"ingest of {counted(len(files), 'file')}",
        bulk=bulk,
    )


def _commit(
    lake: Lake,
    pool_name: str,
    job: PendingLoad,
    files: list[SourceFile],
    built: dict[str, list[WrittenObject]],
    *,
    branch: str,
) -> LoadResult:
    """Commits the objects of all these files as one transaction; `built` has them by file.

    If an earlier try has committed the files, returns its result.
    """
    target = lake.pool(pool_name).branch(branch)
    token = IngestBatch(tuple(files)).token(branch)
    first = target.begin_load(token=token)
    if isinstance(first, LoadResult):  # a try before this one committed them, and died
        return first
    check_unchanged(files, access=address_of(lake.store))
    written = [one for file in files for one in built[file.uri]]
    result = target.commit(
        replace(job, token=token, message=f"ingest of {counted(len(files), 'file')}"),
        objects=[w.action for w in written],
        schemas=list({w.action.schema: w.schema for w in written}.values()),
        sources=[file.source for file in files],
        misfits=summed(one.misfits for one in written),
    )
    return with_lost(result, written, pool_name=pool_name)


def _build_apart(
    workers: Workers, lake: Lake, target: Branch, job: PendingLoad, files: list[SourceFile]
) -> tuple[dict[str, list[WrittenObject]], list[Refused]]:
    """Writes the objects of each file on its own.  Returns them by the file's name, and the files that cannot be
    loaded."""
    units = [Unit(number, (FilePart(file.uri, file.size),)) for number, file in enumerate(files)]
    readings = target.readings([file.uri for file in files], fields=job.fields)
    work = LoadWork(target.config, job, target.settings["ingest.format"], readings)
    built: dict[str, list[WrittenObject]] = {}
    refused = []
    answers = workers.map(partial(_build_or_refuse, work), units)
    for file, answer in zip(files, answers, strict=True):
        if isinstance(answer, str):
            refused.append((file, _why(answer, file)))
        else:
            built[file.uri] = answer
    return built, refused


def _build_or_refuse(work: LoadWork, worker: Worker, unit: Unit) -> list[WrittenObject] | str:
    """Returns the objects of a file, or the reason why it cannot be loaded.  It does not raise that, because an
    error would end the other tasks."""
    try:
        return build_unit(work, worker, unit)
    except InvalidInput as error:
        return str(error)


def summed_results(results: Sequence[LoadResult]) -> LoadResult:
    """Returns one result for several transactions: the version of the last one, and the sums over the new ones.

    It is `repeated` if all of them were committed before.
    """
    if not results:
        return LoadResult(None)
    figures = ("records", "objects", "size", "nokey", "rejected", "retyped")
    new = [one for one in results if not one.repeated]
    return replace(
        results[-1],
        changes=tuple(dict.fromkeys(line for one in results for line in one.changes)),
        notes=tuple(dict.fromkeys(line for one in results for line in one.notes)),
        repeated=not new,
        **{name: sum(getattr(one, name) for one in new or results) for name in figures},
    )


def _why(text: str, file: SourceFile) -> str:
    """Returns the text of an error without the name of the file, which is shown beside it."""
    for name in (file.uri, without_secrets(file.uri)):
        text = text.removeprefix(f"{name}, ").removeprefix(f"{name}: ")
    return text
