"""Files that earlier publications left, and that no table needs: pure.

A publication deletes them at its end.  A reader of an older table may still open its files, and a publisher that is
at work has written files that no table names yet; so a file stays for the pool's `vacuum.grace`.  Its age is by the
clock of the store: from when it was written to when the newest file was.  No two publications write files of one
name, so none needs what another one wrote.  Names that no publication gives are not the lake's, and stay.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from lake_core.naming import ID_LENGTH
from lake_core.store import ObjectInfo

_ID = f"[0-9A-Za-z]{{{ID_LENGTH}}}"
_OURS = re.compile(
    r"(?:.*/)?(?:metadata/(?:v[0-9]+\.metadata\.json|version-hint\.text"
    rf"|{_ID}-m[0-9]+\.avro|snap-[0-9]+-{_ID}\.avro)|deletes/{_ID}-[0-9a-f]+-{_ID}\.parquet)"
)


def is_ours(name: str) -> bool:
    """Whether a publication may have given the name."""
    return _OURS.fullmatch(name) is not None


def leftovers(infos: Sequence[ObjectInfo], *, needed: Collection[str], grace: float) -> list[str]:
    """The names of the files that may be deleted; `infos` are all of the table's, `grace` is in seconds."""
    newest = max((info.modified for info in infos), default=0.0)
    return [
        info.name
        for info in infos
        if info.name not in needed and is_ours(info.name) and newest - info.modified > grace
    ]
