"""Typed JSON as Spark's variants, and back: fields whose values have several classes.

Both have forms for times, dates, bytes and NaN.  A variant has no time of day and no duration: these become the
text that the lake shows.  It has no map either: a map becomes a record.  Numbers with a fraction are decimals
in a variant, as Spark's own `parse_json` makes them, and plain JSON numbers in the lake.  `columns.variant`
reads variants.
"""

from __future__ import annotations

import datetime as dt
import decimal
from functools import lru_cache
from typing import Any

from pyspark.sql.variant_utils import VariantBuilder, VariantUtils

from lake_core.keys.encoding import Instant, class_of
from log_lake.columns.variant import VariantReader
from log_lake.texts.typed_json import TAG, dumps, dumps_shown, text_of, value_of
from log_lake.texts.value import show

_MOST_DIGITS = VariantUtils.MAX_DECIMAL16_PRECISION


@lru_cache(maxsize=65_536)
def variant_of(text: str) -> dict[str, bytes]:
    """Returns the parts of a variant (value and metadata) that holds the value of this typed JSON.  Raises
    PySparkValueError if it exceeds 16 MiB."""
    value, metadata = _Builder().build(text)
    return {"value": value, "metadata": metadata}


@lru_cache(maxsize=65_536)
def text_of_variant(value: bytes, metadata: bytes) -> str | None:
    """Returns the typed JSON of a variant; None for null, which is no value in the lake.

    Raises ValueError for a time that the lake cannot hold, and for a damaged variant.
    """
    decoded = VariantReader(metadata).value(value)
    return None if decoded is None else text_of(decoded)


class _Builder(VariantBuilder):
    """Spark's own builder, which accepts plain JSON only, extended by the lake's classes."""

    def _process_parsed_json(self, parsed: Any) -> None:
        if not (isinstance(parsed, dict) and len(parsed) == 1):
            super()._process_parsed_json(parsed)
            return
        ((name, inner),) = parsed.items()
        if name == f"{TAG}record" and isinstance(inner, dict):
            super()._process_parsed_json(inner)
        elif name == f"{TAG}map" and isinstance(inner, list):
            super()._process_parsed_json({_key(key): item for key, item in inner})
        elif name.startswith(TAG) and isinstance(inner, str):
            self._append(value_of(dumps(parsed)))
        else:
            super()._process_parsed_json(parsed)

    def _append(self, value: Any) -> None:
        match value:
            case Instant() if class_of(value).startswith("timestamp"):
                zoned = class_of(value) == "timestamp with zone"
                kind = VariantUtils.TIMESTAMP if zoned else VariantUtils.TIMESTAMP_NTZ
                _, seconds, nanoseconds = value
                self._append_bytes(
                    kind, (seconds * 10**6 + nanoseconds // 1000).to_bytes(8, "little", signed=True)
                )
            case dt.date():
                days = (value - dt.date(1970, 1, 1)).days
                self._append_bytes(VariantUtils.DATE, days.to_bytes(4, "little", signed=True))
            case bytes():
                self._append_bytes(VariantUtils.BINARY, len(value).to_bytes(4, "little") + value)
            case float():
                self._append_float(value)
            case decimal.Decimal():
                plain = decimal.Decimal(format(value, "f"))
                _, digits, exponent = plain.as_tuple()
                if len(digits) <= _MOST_DIGITS and isinstance(exponent, int) and -exponent <= _MOST_DIGITS:
                    self._append_decimal(plain)
                else:
                    self._append_string(show(value))
            case Instant():
                self._append_string(show(value))
            case _:  # a record whose one member only looks like a class
                super()._process_parsed_json(value)

    def _append_bytes(self, kind: int, data: bytes) -> None:
        self._check_capacity(1 + len(data))
        self.value.extend(self._primitive_header(kind))
        self.value.extend(data)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else dumps_shown(value_of(dumps(key)))
