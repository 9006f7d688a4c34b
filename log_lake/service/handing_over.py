"""Stores a body as a file for the ingest agent, which loads it later, with others, once.

The file is in the folder of the pool's `ingest.source`, under a name made from the caller and the token.  So a
body that is sent again is the same file, and the agent does not load it twice.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from fnmatch import fnmatchcase

import msgspec

from lake_core.errors import InvalidInput, Unavailable
from lake_core.store import address_of
from log_lake.kafka.source import is_kafka
from log_lake.lake.pool import Pool
from log_lake.loading.block import Reading
from log_lake.loading.detect import format_of
from log_lake.loading.failures import unopened
from log_lake.loading.opening import remote
from log_lake.service.routes import Load

_PART = 1 << 20


class HandedOver(msgspec.Struct, frozen=True):
    """The file that the ingest agent will load; `repeated`: an earlier request with this token made it."""

    pool: str
    file: str
    repeated: bool


def hand_over(pool: Pool, load: Load, *, path: str, format: str) -> HandedOver:
    """Puts the body, which is in the file `path`, where the ingest agent finds it.

    Raises InvalidInput if the pool has no `ingest.source`, if its pattern excludes the name, if it is a
    sub-pool, or if the body's format is not known.
    """
    if pool.sub_pool:
        raise InvalidInput(f"the sub-pool {pool.sub_pool} is read-only: load into the pool itself")
    source = pool.settings["ingest.source"]
    if not source:
        raise InvalidInput(
            f"pool {pool.name!r} has no ingest.source, so no agent would load the body; leave out Prefer: "
            "respond-async"
        )
    if load.options or load.message or load.branch != "main":
        raise InvalidInput(
            "Prefer: respond-async: the ingest agent reads files by the settings of the pool, into main; leave out "
            "branch, message and options"
        )
    if is_kafka(source):
        raise InvalidInput(
            f"pool {pool.name!r} takes messages of Kafka, and no files; leave out Prefer: respond-async"
        )
    if format == "auto":  # the agent goes by names first
        format = format_of(Reading("the body", path=path))
    target = _target(source, load.token, format, caller=pool.context.author)
    if "://" in target:
        repeated = _put_remote(target, path, pool)
    else:
        repeated = _put_local(target, path)
    return HandedOver(pool.name, target, repeated)


def _target(source: str, token: str, format: str, *, caller: str) -> str:
    """Returns the name of the file; no other caller's body has this name.

    Raises InvalidInput if the agent would not find a file of this name.
    """
    digest = hashlib.sha256(msgspec.msgpack.encode((caller, token))).hexdigest()
    name = f"sent-{digest[:32]}.{format}"
    folder, _, last = source.rpartition("/")
    if not any(sign in source for sign in "*?["):
        return f"{source.rstrip('/')}/{name}"
    if any(sign in folder for sign in "*?[") or not fnmatchcase(name, last):
        raise InvalidInput(
            f"ingest.source={source}: does not match a file {name}; send a body of another format, or leave out "
            "Prefer: respond-async"
        )
    return f"{folder}/{name}"


def _put_local(target: str, path: str) -> bool:
    """Puts the file into a local folder; returns whether it was already there.

    The agent never sees a part of it, because it skips files that end in `.tmp`.  Others may write to the
    folder.  So the file is always created new, under a name that no other program knows before.  Then no link
    of theirs can direct the body to another file of the server (decision 430).
    """
    temporary = f"{target}.{secrets.token_hex(8)}.tmp"
    try:
        with open(path, "rb") as body, open(temporary, "xb") as file:
            try:
                shutil.copyfileobj(body, file, _PART)
                file.flush()
                os.link(temporary, target)
            except FileExistsError:
                return True
            finally:
                os.unlink(temporary)
    except OSError as error:
        raise Unavailable(f"file {target!r}: {error.strerror or error}") from error
    return False


def _put_remote(target: str, path: str, pool: Pool) -> bool:
    try:
        fs, inside = remote(target, address_of(pool.store))
        if fs.exists(inside):
            return True
        fs.put_file(path, inside)
    except Exception as error:  # clients of stores raise classes of many families
        raise unopened(f"file {target!r}", error) from error
    return False
