"""How a CSV file is written: the settings `csv.*` as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class _Settings(Protocol):
    def __getitem__(self, name: str) -> Any: ...


@dataclass(frozen=True)
class CsvOptions:
    """The settings of the same names; "" is `auto` or `none`."""

    delimiter: str = ""
    quote: str = '"'
    escape: str = ""
    encoding: str = ""
    header: str = "first"
    names: tuple[str, ...] = ()
    bad_names: str = "fail"
    comment: str = ""
    null: tuple[str, ...] = ()
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    decimal: str = "."
    date_format: str = ""
    time_format: str = ""


def csv_options(settings: _Settings) -> CsvOptions:
    """The settings of a pool and of a load as options."""
    return CsvOptions(**{name: settings[f"csv.{name}"] for name in CsvOptions.__dataclass_fields__})
