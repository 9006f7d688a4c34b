"""Sends one request for a range of an object, or for the whole of a small one, to S3 or Google Cloud Storage.

fsspec returns the bytes of a range, but not the object's size and tag, although the answer states them. And to
read a small object as a whole, it would read an object of any size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from fsspec.asyn import sync

from lake_core.store.planned import Range
from log_lake.stores.ranges import RangeAnswer

_CONTENT_RANGE = re.compile(r"bytes (?:\d+-\d+|\*)/(\d+)")

Ask = Callable[[Any, str, Range], RangeAnswer]
"""A function of (file system, path, range) that returns the answer.  Raises what the library raises."""

AskWhole = Callable[[Any, str, int], RangeAnswer]
"""A function of (file system, path, most bytes) that returns the answer.  Raises what the library raises."""

_BLOCK = 1 << 20
"""How many bytes of an answer are read at a time."""


def _asked(asked: Range) -> str:
    return f"bytes={asked.begin}-{asked.end - 1}"


def _piece(data: bytes, content_range: str, asked: Range) -> RangeAnswer:
    """Makes the answer from its data. If no header says which part of the object they are, they are all of
    it."""
    told = _CONTENT_RANGE.fullmatch(content_range)
    if told is None:
        return RangeAnswer(data[asked.begin : asked.end], len(data))
    return RangeAnswer(data, int(told[1]))


def s3_piece(fs: Any, path: str, asked: Range) -> RangeAnswer:
    """Fetches a range of an object of S3, by `GetObject`."""
    from s3fs.core import _error_wrapper

    bucket, key, _ = fs.split_path(path)

    async def ask() -> tuple[bytes, str]:
        answer = await fs._call_s3("get_object", Bucket=bucket, Key=key, Range=_asked(asked))
        try:
            return await answer["Body"].read(), str(answer.get("ContentRange", ""))
        finally:
            answer["Body"].close()

    async def repeated() -> tuple[bytes, str]:
        answer: tuple[bytes, str] = await _error_wrapper(ask, retries=fs.retries)
        return answer

    data, told = sync(fs.loop, repeated)
    return _piece(data, told, asked)


def gcs_piece(fs: Any, path: str, asked: Range) -> RangeAnswer:
    """Fetches a range of an object of Google, by `objects.get` with its media."""
    headers: Mapping[str, str]
    headers, data = fs.call("GET", fs.url(path), headers={"Range": _asked(asked)})
    piece = _piece(bytes(data), headers.get("Content-Range", ""), asked)
    return replace(piece, tag=headers.get("x-goog-generation", ""))


def s3_whole(fs: Any, path: str, most: int) -> RangeAnswer:
    """Returns a whole object of S3, by `GetObject`, if it has at most `most` bytes; otherwise only its size."""
    from s3fs.core import _error_wrapper

    bucket, key, _ = fs.split_path(path)

    async def ask() -> RangeAnswer:
        answer = await fs._call_s3("get_object", Bucket=bucket, Key=key)
        body, data = answer["Body"], bytearray()
        try:
            if (size := int(answer.get("ContentLength") or 0)) > most:
                return RangeAnswer(b"", size)
            while len(data) <= most and (block := await body.read(_BLOCK)):
                data += block
            return RangeAnswer(bytes(data), len(data), str(answer.get("ETag", "")))
        finally:
            body.close()

    async def repeated() -> RangeAnswer:
        answer: RangeAnswer = await _error_wrapper(ask, retries=fs.retries)
        return answer

    whole: RangeAnswer = sync(fs.loop, repeated)
    return whole


def gcs_whole(fs: Any, path: str, most: int) -> RangeAnswer:
    """Fetches a whole object of Google as `s3_whole` does; if the object is too large, it also reads the first
    bytes."""
    return gcs_piece(fs, path, Range(0, most + 1))


ASK: dict[str, Ask] = {"s3": s3_piece, "gs": gcs_piece}
ASK_WHOLE: dict[str, AskWhole] = {"s3": s3_whole, "gs": gcs_whole}
