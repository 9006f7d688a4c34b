"""Where a pool's source files are and how they are gathered: its settings `ingest.*`, and these as one value."""

from __future__ import annotations

from dataclasses import dataclass

from log_lake.kafka.source import FORM, is_kafka, kafka_source
from log_lake.loading.options import FORMATS
from log_lake.settings import Settings
from log_lake.settings.setting_types import DURATION, SIZE, SettingType, count, one_of
from log_lake.settings.settings import Setting


def _source(text: str) -> str:
    """Returns the text unchanged.  Raises ValueError if it names topics of Kafka in a wrong form."""
    if is_kafka(text):
        kafka_source(text)
    return text


SOURCE = SettingType(_source, f"a folder, a glob, or `{FORM}`")

SETTINGS = {
    "ingest.source": Setting(
        SOURCE,
        "",
        "folder or glob of the files to load, or topics of Kafka (kafka://HOST:PORT/TOPIC); if empty, the ingest "
        "agent skips this pool",
    ),
    "ingest.format": Setting(
        one_of(*FORMATS), "auto", "format of these files; auto: by their names and first bytes"
    ),
    "ingest.batch_files": Setting(count(1), "1000", "maximum number of files in one batch"),
    "ingest.batch_bytes": Setting(SIZE, "1GiB", "maximum size of one batch (a larger file is a batch alone)"),
    "ingest.batch_age": Setting(
        DURATION, "0s", "let a batch that is not full wait until its oldest file is this old"
    ),
}


@dataclass(frozen=True)
class BatchPolicy:
    """When a batch of files is full (by number, by bytes), and how many seconds a batch that is not full may
    wait."""

    max_files: int
    max_bytes: int
    age: float


def policy_of(settings: Settings, *, wait: bool = True) -> BatchPolicy:
    """Returns the policy that the settings `ingest.batch_*` describe; without `wait`, no batch waits to
    fill."""
    return BatchPolicy(
        max_files=settings["ingest.batch_files"],
        max_bytes=settings["ingest.batch_bytes"],
        age=settings["ingest.batch_age"] if wait else 0.0,
    )
