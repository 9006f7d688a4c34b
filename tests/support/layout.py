"""Writes objects in the layout of the time before decision 124, which readers must still read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow.parquet as pq
import pytest


@contextmanager
def layout_before() -> Iterator[None]:
    """Inside the block, decimals are written as bytes of fixed length."""
    with pytest.MonkeyPatch.context() as patch:
        made = pq.ParquetWriter.__init__

        def old(self: pq.ParquetWriter, *words: Any, **options: Any) -> None:
            made(self, *words, **options | {"store_decimal_as_integer": False})

        patch.setattr(pq.ParquetWriter, "__init__", old)
        yield
