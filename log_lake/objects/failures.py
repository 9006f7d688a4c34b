"""Turns Arrow's failures, in reads and writes of objects, into errors of the lake.

Arrow raises unrelated classes (ArrowInvalid, OSError, KeyError, RuntimeError, ...), depending on the damaged
byte.  A caller cannot act on them, so each becomes an error of the lake that says what to do, in one line.
Errors of the lake pass unchanged: a store that does not answer raises its own error through Arrow.

Callers: `read` and `write` here, `checkpoints`, `inspection`, and the merge in which DataFusion reads files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from lake_core import naming
from lake_core.errors import Corrupt, InvalidInput, LakeError, ObjectMissing, Unavailable, words


def missing(
    where: str, name: str, what: str = "restore it, or take it out (lake repair)", *, object_id: str = ""
) -> ObjectMissing:
    """Returns the error for a data object that the store does not have; `where` names the store, or the folder.

    `object_id`: the name by which a pool refers to it, if the caller knows it.
    """
    full = f"{where}/{name}" if where else name
    return ObjectMissing(
        f"{full}: this data object is missing from the store; {what}",
        object_id=object_id or naming.data_id(name) or "",
    )


def unreadable(name: str, what: str, error: Exception) -> LakeError:
    """Returns the error for a failed read of the object `name`; `what` says what failed.

    An OSError with an errno comes from the system.  Parquet's own OSErrors have none, and concern the content.
    """
    if isinstance(error, LakeError):
        return error
    if isinstance(error, FileNotFoundError):
        return missing("", name)
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None):
        return Unavailable(f"{name}: {words(error)}")
    return Corrupt(f"{name}: {what}: {words(error)}")


@contextlib.contextmanager
def reading(name: str, what: str = "cannot be decoded") -> Iterator[None]:
    """Returns a context in which every failure becomes an error of the lake.  Its block must not contain a
    `yield`."""
    try:
        yield
    except Exception as error:  # Arrow raises classes of many families
        failure = unreadable(name, what, error)
        if failure is error:
            raise
        raise failure from error


@contextlib.contextmanager
def writing(name: str) -> Iterator[None]:
    """Returns a context in which every failure becomes an error of the lake: an error about the store, or one
    about the records."""
    try:
        yield
    except LakeError:
        raise
    except (OSError, MemoryError) as error:
        raise Unavailable(f"{name}: writing this object failed: {words(error)}") from error
    except Exception as error:  # Arrow raises classes of many families
        raise InvalidInput(
            f"{name}: Arrow refuses to write these records: {words(error)}; nothing was committed"
        ) from error
