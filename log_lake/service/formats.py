"""The format of an answer, by the client's `Accept`, and that of a body, by its `Content-Type`; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from log_lake.loading.options import FORMATS
from log_lake.service.problems import Problem


@dataclass(frozen=True)
class AnswerFormat:
    """A format of answers: its name in `console.output`, its media type, and other names that clients use."""

    name: str
    media_type: str
    also: tuple[str, ...] = ()


ANSWERS = (
    AnswerFormat(
        "json", "application/x-ndjson", ("application/ndjson", "application/jsonl", "application/json-lines")
    ),
    AnswerFormat("csv", "text/csv"),
    AnswerFormat("arrow", "application/vnd.apache.arrow.stream"),
)
"""Formats of answers.  A client that accepts any gets the first."""

URIS = "text/uri-list"
"""The media type of a body that lists files (RFC 2483)."""

_BODIES = {
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "application/json": "json",
    "text/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.apache.avro": "avro",
    "application/avro": "avro",
    "application/vnd.apache.orc": "orc",
}
"""Formats of loads by media types.  For any other type, the content of the body decides."""

_WEIGHT = re.compile(r"q=([01](?:\.[0-9]{0,3})?)", re.IGNORECASE)


def answer_format(accept: str) -> AnswerFormat:
    """Returns the format that the client prefers; "" and `*/*` accept any.  Raises Problem if it accepts
    none."""
    weighed: list[tuple[float, AnswerFormat]] = []
    for part in accept.split(",") if accept.strip() else ["*/*"]:
        name, *parameters = (word.strip().lower() for word in part.split(";"))
        weights = [float(weight[1]) for word in parameters if (weight := _WEIGHT.fullmatch(word))]
        format = _named(name)
        if format is not None and (least := min([1.0, *weights])):
            weighed.append((least, format))
    if not weighed:
        raise Problem(406, f"Accept: answers are {', '.join(one.media_type for one in ANSWERS)}; ask for one")
    return max(weighed, key=lambda one: one[0])[1]


def _named(name: str) -> AnswerFormat | None:
    if name in ("*/*", "application/*"):
        return ANSWERS[0]
    types = ((one, (one.media_type, *one.also)) for one in ANSWERS)
    by_name = next((one for one, names in types if name in names), None)
    return by_name or (ANSWERS[1] if name == "text/*" else None)


def media_type(content_type: str) -> str:
    """Returns the media type of a `Content-Type`, without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def body_format(content_type: str, asked: str) -> str:
    """Returns the format to load.  It is that of the request's parameter `format` (`asked`), otherwise that of the
    media type; "auto" if neither says it.  Raises Problem for an unknown format."""
    if asked and asked not in FORMATS:
        raise Problem(400, f"format={asked}: a format is one of {', '.join(FORMATS)}")
    return asked or _BODIES.get(media_type(content_type), "auto")
