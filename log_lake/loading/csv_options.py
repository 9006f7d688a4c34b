"""How a CSV file is written: the settings `csv.*`, checked against each other.

No character and no word may have two meanings; otherwise values would change silently. An escape character that
equals the quote changes nothing, because a doubled quote always stands for one quote.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations

from lake_core.errors import InvalidInput
from log_lake.settings import Settings


@dataclass(frozen=True)
class CsvOptions:
    """The settings `csv.*` under the same names; "" stands for `auto` and for `none`."""

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

    @property
    def reserved(self) -> str:
        """The characters that cannot be the delimiter, because they have another meaning."""
        return self.quote + self.escape + self.comment


def csv_options(settings: Settings) -> CsvOptions:
    """Returns the CSV options from the settings of a pool and a load.  Raises InvalidInput if two of them exclude
    each other."""
    options = CsvOptions(**{name: settings[f"csv.{name}"] for name in CsvOptions.__dataclass_fields__})
    if options.escape == options.quote:
        options = replace(options, escape="")
    if fault := _fault(options):
        raise InvalidInput(fault)
    return options


def _fault(options: CsvOptions) -> str:
    """Returns the reason why the options cannot be used together; "" if they can."""
    for one, other in combinations(("delimiter", "quote", "escape", "comment"), 2):
        character = getattr(options, one)
        if character and character == getattr(options, other):
            return f"csv.{one} and csv.{other} are both {character!r}: use different characters"
    if options.decimal == options.delimiter and not options.quote:
        return (
            f"csv.decimal and csv.delimiter are both {options.decimal!r}: numbers must be quoted (csv.quote)"
        )
    for one, other in combinations(("null", "true", "false"), 2):
        if both := sorted({*getattr(options, one)} & {*getattr(options, other)} - {""}):
            return f"csv.{one} and csv.{other} both have the word {both[0]!r}: remove it from one of them"
    return _names_fault(options) if options.names else ""


def _names_fault(options: CsvOptions) -> str:
    from lake_core.schemas.limits import (
        MAX_COLUMNS,
        name_fault,
    )  # loads Arrow, which `lake --help` does not need

    if len(options.names) > MAX_COLUMNS:
        return f"csv.names has {len(options.names):,} names; a record may have at most {MAX_COLUMNS:,} fields"
    if fault := next(filter(None, map(name_fault, options.names)), ""):
        return f"csv.names: {fault}"
    if options.bad_names == "number":
        return ""
    name, times = Counter(options.names).most_common(1)[0]
    if times == 1 and "" not in options.names:
        return ""
    fault = "a name is empty" if "" in options.names else f"{name!r} is there more than once"
    return f"csv.names must name every field once: {fault}; correct it, or set csv.bad_names=number"
