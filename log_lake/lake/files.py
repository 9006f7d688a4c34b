"""Decides how files are read for a pool: by the pool's settings, by the options of the call, which take
precedence, and by fields from file names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.records.pools import PoolConfig
from lake_core.schemas.hidden import DELETED
from lake_core.schemas.rule import rule_of
from lake_core.store import Address
from log_lake.loading.block import Reading
from log_lake.loading.contract import contract_of
from log_lake.loading.csv_options import csv_options
from log_lake.loading.expansion import Expansion
from log_lake.loading.files import FileSource
from log_lake.loading.options import READ_OPTIONS
from log_lake.loading.partitions import partition_fields
from log_lake.loading.source_files import check_list
from log_lake.settings import Settings
from log_lake.settings.settings import check_settings


def readings(
    config: PoolConfig,
    files: list[str],
    *,
    options: Mapping[str, str] | None = None,
    access: Address | None = None,
    fields: pa.Schema | None = None,
) -> dict[str, Reading]:
    """Returns how to read each file.  `access` is the address of the lake.  `fields` are the fields to which the
    records may be limited.

    Raises InvalidInput for an unknown option or value.
    """
    check_list(files)
    chosen = options or {}
    check_settings(
        chosen, kind=config.kind, key=config.key, aggregates=config.aggregates, stored=config.settings
    )
    for name in chosen:
        if name not in READ_OPTIONS and not name.startswith("type."):
            raise InvalidInput(
                f"option {name}: is a setting of the pool, and says nothing of how files are read; leave it out"
            )
    settings = Settings({**config.settings, **chosen})
    rule = rule_of(config)
    declared = settings.declared
    if rule.kind == "upsert":
        declared.setdefault(DELETED, pa.field(DELETED, pa.bool_()))
    constants = partition_fields(files, declared) if settings["partitions"] == "hive" else {}
    return {
        file: Reading(
            file,
            declared=declared,
            key=config.key.names,
            rule=rule,
            bad_records=settings["bad_records"],
            keyless=settings["nokey"],
            records=settings["records"],
            csv=csv_options(settings),
            expansion=Expansion(most=settings["expansion.max"]),
            constants=constants.get(file, ()),
            access=access,
            contract=contract_of(settings["schema"], fields or pa.schema([]), config),
            keeps_rows=rule.keeps_rows([settings["format"]]),
        )
        for file in files
    }


@contextmanager
def open_files(
    config: PoolConfig,
    files: list[str],
    *,
    options: Mapping[str, str] | None,
    access: Address,
    progress: Callable[[str, float], None],
    fields: pa.Schema | None = None,
    paths: Mapping[str, str] | None = None,
) -> Iterator[FileSource]:
    """Returns a context with the records of the files; standard input and FIFOs are copied to disk until its block
    ends.

    `paths`: where on this machine the bytes of a file are, if not under its name.
    """
    from log_lake.loading.opening import kept_streams  # loads slowly

    by_file = readings(config, files, options=options, access=access, fields=fields)
    with kept_streams(files) as copies:
        for file, reading in by_file.items():
            reading.path, reading.progress = copies.get(file) or (paths or {}).get(file, ""), progress
        yield FileSource([by_file[file] for file in files])
