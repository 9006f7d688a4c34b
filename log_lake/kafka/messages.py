"""Turns messages into blocks of records, as a reader of files does.

Values that are JSON go to the reader of JSON lines, one line each, so types, limits and bad records are handled
as in files.  A bad record is named by topic, partition and offset: its `file` is `kafka:TOPIC/PARTITION`, its
`line` the offset.

A value with several lines becomes one line.  A value that does not begin with `{` is a bad record before that
reader gets it: otherwise the first value could look like the begin of an array, or like another encoding, and
change how all later ones are read.
"""

from __future__ import annotations

import codecs
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from lake_core.errors import InvalidInput, Unavailable, words
from lake_core.schemas.hidden import DELETED
from log_lake.kafka.broker import Message
from log_lake.kafka.settings import DELETE, KEY_FIELD, SKIP, TEXT, KafkaPolicy
from log_lake.loading.block import Block, Reading, Rejected
from log_lake.loading.checks import checked
from log_lake.loading.detect import json_lines
from log_lake.loading.formats.json_structure import SPACE, frame_of, structure

_TYPES: dict[str, pa.DataType] = {
    "key": pa.string(),
    "headers": pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())])),
    "timestamp": pa.timestamp("us", "UTC"),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
}
_MARK_OF_REGISTRY, _BEFORE_DATA = b"\0", 5
"""A value that was written with a schema registry begins with this byte.  The second number is how many bytes
precede its data: this byte, and four for the schema's id."""


class _Bad(ValueError):
    """Raised for a message that is not a record; its text is the reason."""


@dataclass
class MessageReading(Reading):
    """How to read the messages of a load; line n is the value of `messages[n - 1]`."""

    messages: Sequence[Message] = ()

    @classmethod
    def like(cls, reading: Reading) -> MessageReading:
        """Returns a reading of messages with the options of another one. A record without the key always goes to
        the sub-pool `$nokey`: whether all records of a batch lack it depends on how many arrived."""
        return cls(**{**vars(reading), "keyless": "accept", "records": ""})

    def reject(self, line: int, reason: str, raw: str | bytes | None) -> Rejected:
        """Rejects a record as `Reading.reject` does, but names the place of its message."""
        message = self.messages[line - 1]
        if self.bad_records == "fail":
            raise InvalidInput(f"{_place(message)}, offset {message.offset}: {reason}")
        rejected = super().reject(line, reason, raw if message.value is None else message.value)
        return replace(rejected, file=_place(message), line=message.offset)

    def unreadable(self, line: int, reason: str) -> NoReturn:
        """Raises InvalidInput for messages that cannot be read one by one."""
        message = self.messages[max(0, line - 1)]
        raise InvalidInput(f"{_place(message)}, offset {message.offset} or later: {' '.join(reason.split())}")


def _place(message: Message) -> str:
    return f"kafka:{message.partition.topic}/{message.partition.number}"


def blocks_of(messages: Sequence[Message], policy: KafkaPolicy, reading: MessageReading) -> Iterator[Block]:
    """Yields the records of messages, with the bad ones beside them.

    Raises InvalidInput for a bad record, unless these are quarantined.
    """
    lines: list[bytes | None] = []
    sound: list[Message] = []
    rejected: list[Rejected] = []
    for message in messages:
        if message.value is None and policy.nulls == SKIP:
            continue
        try:
            _check_parts(message, policy.fields)
            lines.append(_line(message, policy, reading.key))
            sound.append(message)
        except _Bad as bad:
            raw = message.key if message.value is None else message.value
            rejected.append(replace(reading, messages=[message]).reject(1, str(bad), raw))
    if rejected:
        yield Block(pa.table({}), tuple(rejected), checked=True)
    if lines:
        reading = replace(reading, messages=sound)
        read = _texts(lines, reading) if policy.value == TEXT else _records(lines, reading)
        yield from checked((_with_parts(*one, policy, reading) for one in read), reading, trusts_json=True)


def _line(message: Message, policy: KafkaPolicy, key: tuple[str, ...]) -> bytes | None:
    """Returns the value as a line of JSON, or as text; None for text without a value.  Raises _Bad."""
    value = message.value
    if value is None and policy.nulls == DELETE:
        return None if policy.value == TEXT else _deleting(message, key)
    if value is None:
        raise _Bad("it has no value; kafka.nulls says what becomes of such messages")
    if policy.value == TEXT:
        _text(value, "its value")
        return value
    value = value.removeprefix(codecs.BOM_UTF8)
    if not value.lstrip(SPACE).startswith(b"{"):
        raise _Bad(_why_no_object(value))
    if b"\n" in value:
        return frame_of(value, 1, [(0, len(value))], structure(value)).lines
    return value


def _why_no_object(value: bytes) -> str:
    if value.startswith(_MARK_OF_REGISTRY) and len(value) >= _BEFORE_DATA:
        schema = int.from_bytes(value[1:_BEFORE_DATA])
        return (
            f"it is framed for a schema registry (schema {schema}), which is not read; let a connector write JSON "
            "into another topic"
        )
    return "its value is no JSON object; kafka.value=text stores any text" if value else "its value is empty"


def _deleting(message: Message, key: tuple[str, ...]) -> bytes:
    """Returns the line that deletes the record with the message's key.  Raises _Bad."""
    mark = json.dumps({DELETED: True}).encode()
    if key == (KEY_FIELD,):
        return mark
    text = (message.key or b"").strip(SPACE)
    try:
        named = json.loads(text)
    except (ValueError, RecursionError):
        named = None
    if not isinstance(named, dict) or any(_at(named, name) is None for name in key):
        raise _Bad(f"it has no value, and its key is no JSON object with the pool's key ({', '.join(key)})")
    return text.replace(b"\n", b" ").replace(b"\r", b" ")[:-1] + b"," + mark[1:]


def _at(record: Any, path: str) -> Any:
    """Returns the value of a field, or of a path into records; None if the record has no such field."""
    if not isinstance(record, dict) or path in record:
        return record.get(path) if isinstance(record, dict) else None
    first, _, rest = path.partition(".")
    return _at(record.get(first), rest) if rest else None


def _check_parts(message: Message, fields: tuple[str, ...]) -> None:
    """Raises _Bad if a part that is stored as text is not valid text."""
    if "key" in fields and message.key is not None:
        _text(message.key, "its key")
    if "key" in fields and message.key is None and message.value is None:
        raise _Bad("it has neither a key nor a value")
    if "timestamp" in fields and message.time is not None and not FIRST_MS <= message.time <= LAST_MS:
        raise _Bad(f"its time, {message.time} ms since 1970, is outside of the years 1 to 9999")
    if "headers" in fields:
        for name, value in message.headers:
            if value is not None:
                _text(value, f"its header {name!r}")


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _Bad(f"{what} is not UTF-8: byte {error.start + 1} is {data[error.start]:#04x}") from None


FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, in milliseconds since 1970."""

Numbered = tuple[Block, Sequence[int]]
"""A block, and for each of its rows the index of its message."""


def _texts(lines: Sequence[bytes | None], reading: MessageReading) -> Iterator[Numbered]:
    columns = {"value": pa.array(lines, pa.binary()).cast(pa.string())}
    if None in lines:
        columns[DELETED] = pa.array([line is None for line in lines])
    yield Block(pa.table(columns), locate=lambda row: (row + 1, lines[row])), range(len(lines))


def _records(lines: Sequence[bytes | None], reading: MessageReading) -> Iterator[Numbered]:
    """Yields the blocks that the reader of JSON lines makes of the lines, which it reads as a file. Raises
    Unavailable if the disk is full."""
    with tempfile.TemporaryDirectory(prefix="log-lake-kafka-") as folder:
        path = os.path.join(folder, "values")
        try:
            with open(path, "wb") as file:
                file.write(b"\n".join(filter(None, lines)))
        except OSError as error:
            raise Unavailable(f"{path}: a batch of messages cannot be written: {words(error)}") from error
        taken = 0
        for block in json_lines(replace(reading, path=path)):
            rows, locate = block.table.num_rows, block.locate
            assert locate is not None  # a reader of lines knows them
            in_order = not block.rejected and rows and locate(rows - 1)[0] - 1 == taken + rows - 1
            yield (
                block,
                range(taken, taken + rows) if in_order else [locate(row)[0] - 1 for row in range(rows)],
            )
            taken += rows + len(block.rejected)


def _with_parts(block: Block, numbers: Sequence[int], policy: KafkaPolicy, reading: MessageReading) -> Block:
    """Returns the block with the fields `kafka_...`.  A record that already has such a field, and not null in it,
    is bad."""
    table, faults = block.table, dict(block.faults)
    messages = [reading.messages[number] for number in numbers] if policy.fields else []
    for part in policy.fields:
        name = f"kafka_{part}"
        if name in table.schema.names:
            why = f"it has a field {name!r} of its own; leave {part} out of kafka.fields"
            faults |= {int(row): why for row in np.flatnonzero(table[name].is_valid().to_numpy())}
            table = table.drop_columns([name])
        values = pa.array([_part(message, part) for message in messages], _TYPES[part])
        table = table.append_column(name, values)
    return replace(block, table=table, faults=faults)


def _part(message: Message, part: str) -> Any:
    match part:
        case "key":
            return None if message.key is None else message.key.decode()
        case "headers":
            return [
                {"name": name, "value": None if value is None else value.decode()}
                for name, value in message.headers
            ]
        case "timestamp":
            return None if message.time is None else message.time * 1000
        case "topic":
            return message.partition.topic
        case "partition":
            return message.partition.number
    return message.offset
