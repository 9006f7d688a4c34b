"""Names of the copies of objects with converted columns, beside published tables (`publish.types=text`).

Callers: the publication, which makes them, and the erasure, which waits until they are gone.
"""

from __future__ import annotations

from lake_core.naming import MAIN, PARQUET, data_id, published

_FOLDER, _ENDING = "data", f".{PARQUET}"


def copy_name(object_id: str, digest: str, new_id: str) -> str:
    """Returns the name of a copy within the folder of its table.  `digest` is the digest of the part of the object
    that was copied."""
    return f"{copy_prefix(object_id, digest)}{new_id}{_ENDING}"


def copy_prefix(object_id: str, digest: str) -> str:
    """Returns the text with which the names of all copies of this part of the object begin."""
    return f"{_FOLDER}/{object_id}-{digest}-"


def tables_folder(pool_id: str) -> str:
    """Returns the folder of all tables of a pool that lie beside its objects."""
    form = "iceberg"
    return published(pool_id, form, MAIN).removesuffix(f"/{form}/{MAIN}")


def copied_id(name: str) -> str | None:
    """Returns the id of the object whose copy has this name on the store; None if it is not the name of a
    copy."""
    folder, _, last = name.rpartition("/")
    id, dash, _ = last.partition("-")
    if not (folder.endswith(f"/{_FOLDER}") and dash and last.endswith(_ENDING)):
        return None
    return data_id(id if "." in id else f"{id}{_ENDING}")
