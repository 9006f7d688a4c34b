"""The settings `kafka.*`, which say how messages become records, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lake_core.errors import InvalidInput
from lake_core.phrases import choices
from log_lake.settings import Settings
from log_lake.settings.setting_types import DURATION, SettingType, count, one_of
from log_lake.settings.settings import Setting, Together

if TYPE_CHECKING:
    from lake_core.keys import PoolKey

JSON, TEXT = "json", "text"
REJECT, SKIP, DELETE = "reject", "skip", "delete"

FIELDS = ("key", "headers", "timestamp", "topic", "partition", "offset")
"""The parts of a message besides its value, in the order of the fields `kafka_...`."""

_WITH_REGISTRY = ("avro", "protobuf", "json-schema")


def _value(text: str) -> str:
    if text in _WITH_REGISTRY:
        raise ValueError(
            f"messages with a schema registry ({text}) are not read; let a connector write JSON into another topic"
        )
    if text not in (JSON, TEXT):
        raise ValueError(f"use {choices((JSON, TEXT))}")
    return text


def _fields(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    if unknown := [name for name in names if name not in FIELDS]:
        raise ValueError(f"{unknown[0]!r} is unknown; use some of {', '.join(FIELDS)}, separated by commas")
    return tuple(name for name in FIELDS if name in names)


VALUE = SettingType(_value, "`json` or `text`", {"enum": [JSON, TEXT, ""]})
PARTS = SettingType(_fields, "some of " + ", ".join(f"`{name}`" for name in FIELDS))

SETTINGS = {
    "kafka.value": Setting(
        VALUE,
        JSON,
        "json: the value of a message is a JSON object, whose members are fields; text: it is the field value",
    ),
    "kafka.fields": Setting(
        PARTS, "", "store these parts of each message too, as the fields kafka_key, kafka_headers, ..."
    ),
    "kafka.nulls": Setting(
        one_of(REJECT, SKIP, DELETE),
        REJECT,
        "messages without a value; reject: they are bad records; skip: leave them out, and count them; delete: in "
        "an upsert pool, each deletes the record with its key",
    ),
    "kafka.batch_records": Setting(count(1), "1000000", "maximum number of messages in one batch"),
    "kafka.batch_time": Setting(DURATION, "60s", "read for at most this long before a batch is committed"),
}


KEY_FIELD = "kafka_key"


def _check_nulls(settings: Settings, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput if messages without a value cannot delete records of the pool."""
    if settings["kafka.nulls"] != DELETE:
        return
    if kind != "upsert":
        raise InvalidInput(
            f"setting kafka.nulls=delete: a pool of kind {kind} has no deletes by key; use reject or skip"
        )
    if key.names == (KEY_FIELD,) and "key" not in settings["kafka.fields"]:
        raise InvalidInput("setting kafka.nulls=delete: set kafka.fields=key too, which fills the pool's key")
    if key.names != (KEY_FIELD,) and settings["kafka.value"] == TEXT:
        raise InvalidInput(
            "setting kafka.nulls=delete: records of text have no field of the pool's key; make the pool with "
            f"--key {KEY_FIELD}"
        )


NULLS_FIT = Together(frozenset({"kafka.nulls", "kafka.value", "kafka.fields"}), _check_nulls)


@dataclass(frozen=True)
class KafkaPolicy:
    """How messages of a pool are read: see `SETTINGS`.  `batch_time` is in seconds."""

    value: str
    fields: tuple[str, ...]
    nulls: str
    batch_records: int
    batch_bytes: int
    batch_time: float


def kafka_policy(settings: Settings) -> KafkaPolicy:
    """Returns the policy from the settings of a pool."""
    return KafkaPolicy(
        value=settings["kafka.value"],
        fields=settings["kafka.fields"],
        nulls=settings["kafka.nulls"],
        batch_records=settings["kafka.batch_records"],
        batch_bytes=settings["ingest.batch_bytes"],
        batch_time=settings["kafka.batch_time"],
    )
