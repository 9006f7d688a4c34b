"""A store that denies: by `LAKE_READ_ONLY`, by the system, by a server.  All of them are `Denied`."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from lake_core.errors import Denied, Unavailable
from log_lake.lake import Lake
from log_lake.leases import HeldLease, LeaseNote
from log_lake.stores.failures import unavailable
from log_lake.stores.guard import GuardedStore
from log_lake.stores.memory import MemoryStore
from log_lake.stores.read_only import ReadOnlyStore


class Status(Exception):
    """An error of a library that carries a status of HTTP."""

    def __init__(self, code: int) -> None:
        super().__init__(f"status {code}")
        self.code = code


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), Denied),
        (PermissionError("Access Denied"), Denied),
        (OSError(errno.EROFS, "Read-only file system"), Denied),
        (OSError("Forbidden: https://storage/x"), Denied),
        (Status(403), Denied),
        (Status(503), Unavailable),
        (OSError(errno.EIO, "Input/output error"), Unavailable),
    ],
    ids=str,
)
def test_a_denial_is_told_from_a_store_that_is_gone(error: Exception, kind: type[Unavailable]) -> None:
    raised = unavailable("s3://b", "x", error)
    assert type(raised) is kind
    assert raised.may_pass is (kind is Unavailable)


CHANGES: dict[str, Callable[[ReadOnlyStore], object]] = {
    "create": lambda store: store.create("x", b"1"),
    "put": lambda store: store.put("x", b"1", durable=True),
    "delete": lambda store: store.delete("x"),
    "delete_all": lambda store: store.delete_all(["x"]),
    "open_output": lambda store: store.open_output("x"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_store_that_is_only_read_refuses_every_change(change: str) -> None:
    behind = MemoryStore()
    behind.put("x", b"0")
    store = ReadOnlyStore(behind)
    with pytest.raises(Denied, match="x: not changed, because LAKE_READ_ONLY is set"):
        CHANGES[change](store)
    assert store.get("x") == b"0"
    assert [info.name for info in store.list("")] == ["x"]


def test_a_reader_goes_on_without_a_lease_and_a_writer_does_not() -> None:
    behind = MemoryStore()
    lake = Lake.create_on(behind)
    lake.create_pool("p", key="k")
    reader = Lake.open_on(GuardedStore(ReadOnlyStore(behind))).pool("p")
    with reader.leased() as view:
        assert view.version == 0
    reader.leave_lease(reader.at(), duration=60.0)
    assert reader.leases().all == ()
    note = LeaseNote("write", 1, "me", 60.0)
    with pytest.raises(Denied), HeldLease(reader.store, reader.config.id, "0" * 27, note):
        pass
