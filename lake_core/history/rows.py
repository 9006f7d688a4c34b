"""Checks the rows of a pool's checkpoint when a row group is decoded (decision 170).

Checksums show that the bytes are unchanged, but not that this program wrote them.  So the checks require that
names of objects are ids, no range is empty, no count is negative, and nothing is newer than the checkpoint.  The
types of other sections check their own values.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.ids import ID_LENGTH
from lake_core.journal.loaded_state import RECENT
from lake_core.naming import FORMATS, PARQUET
from lake_core.records.transactions import MAX_TRANSACTIONS

REFERENCE, REMOVED, SOURCE, POINT, HOME = "reference", "removed", "source", "point", "home"

_ID = rf"[0-9A-Za-z]{{{ID_LENGTH}}}"
_OBJECT = rf"^{_ID}(\.({'|'.join(f for f in FORMATS if f != PARQUET)}))?"
_FILLED = {
    REFERENCE: ("high", "object", "seq", "applied", "place", "records", "size", "schema", "value"),
    REMOVED: ("seq", "applied", "size"),
    POINT: (),
    HOME: (),
    RECENT: ("seq",),
}
"""The columns of a section that must have no null, besides the key. For sections that are not listed it is
`value`."""

_COUNTS = ("seq", "oldest", "applied", "place", "records", "size")


def check_rows(
    table: pa.Table, *, section: str, version: int, homes: frozenset[str] = frozenset()
) -> str | None:
    """Returns the fault of these rows in words, for the columns that the table has; None if there is none.
    `version` is the checkpoint's; `homes` are the ids of other pools in whose folders objects may lie."""
    names = set(table.column_names)
    filled = ("key", *_FILLED.get(section, ("value",)))
    if null := next((name for name in filled if name in names and table[name].null_count), None):
        return f"a row has no {null}"
    limits = _limits(section, version)
    for name in _COUNTS:
        if name in names and table.num_rows:
            low, high = limits.get(name, (0, None))
            bounds = pc.min_max(table[name]).as_py()
            if bounds["min"] is not None and bounds["min"] < low:
                return f"a row has {name} {bounds['min']}"
            if high is not None and bounds["max"] is not None and bounds["max"] > high:
                return f"a row has {name} {bounds['max']}, which is newer than the checkpoint"
    if section == REFERENCE:
        return _check_references(table, names, homes)
    if section == REMOVED and not _are_objects(table["key"].cast(pa.string()), homes):
        return "a name is not the id of an object"
    if section == HOME and not _all(pc.match_substring_regex(table["key"].cast(pa.string()), f"^{_ID}$")):
        return "a name is not the id of a pool"
    return None


def _are_objects(names: pa.ChunkedArray, homes: frozenset[str]) -> bool:
    """Whether all are names of objects in the folder of the own pool or of one of these homes."""
    home = f"(@({'|'.join(sorted(homes))}))?" if homes else ""
    return _all(pc.match_substring_regex(names, f"{_OBJECT}{home}$"))


def _limits(section: str, version: int) -> dict[str, tuple[int, int | None]]:
    """Returns the lowest and the highest value of columns."""
    newest = (version + 1) * MAX_TRANSACTIONS - 1
    of_sections: dict[str, dict[str, tuple[int, int | None]]] = {
        REFERENCE: {
            "seq": (1, newest),
            "oldest": (1, newest),
            "applied": (0, version),
            "records": (1, None),
            "size": (1, None),
        },
        REMOVED: {"seq": (0, version), "applied": (-(2**63), None)},
        SOURCE: {"seq": (0, version), "applied": (0, version)},
        RECENT: {"seq": (0, version)},
    }
    return of_sections.get(section, {})


def _check_references(table: pa.Table, names: set[str], homes: frozenset[str]) -> str | None:
    if "object" in names and not _are_objects(table["object"], homes):
        return "a name is not the id of an object"
    if "high" in names and not _all(pc.less(table["key"], table["high"])):
        return "the range of a reference is empty"
    if {"seq", "oldest"} <= names and not _all(pc.less_equal(table["oldest"], table["seq"])):
        return "the sequences of a reference are out of order"
    return None


def _all(mask: pa.ChunkedArray) -> bool:
    """Whether all values that are not null are true."""
    return pc.all(mask, min_count=0).as_py() is not False
