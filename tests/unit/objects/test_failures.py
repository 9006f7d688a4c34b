"""Whatever Arrow raises, wherever it is called: the caller hears one line of the lake, and nothing lands.

The faults are injected at each call of Arrow that reads or writes an object or a checkpoint.  They stand for what
cannot be provoked in a test: Arrow raises other classes for other bytes, versions and machines.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.checkpoints import read as checkpoint_read
from lake_core.checkpoints import write as checkpoint_write
from lake_core.errors import InvalidInput, LakeError, ObjectMissing, Unavailable
from log_lake.agents.checkpoint import run as checkpoint
from log_lake.agents.tombstones import run as tombstones
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.containers import parquet, parquet_sink
from log_lake.objects.failures import unreadable
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables.inspection import inspect_object
from tests.support.pools import compact_all

FAULTS: list[Exception] = [
    pa.ArrowInvalid("two\nlines"),
    pa.ArrowTypeError("type"),
    pa.ArrowNotImplementedError("not implemented"),
    pa.ArrowMemoryError("no memory"),
    pa.ArrowIndexError("index"),
    OSError("of Parquet"),
    OSError(5, "Input/output error"),
    KeyError("key"),
    ValueError("value"),
    TypeError("type"),
    RuntimeError("runtime"),
    struct.error("unpack requires 4 bytes"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    RecursionError("deep"),
    ZeroDivisionError(),
]
RECORDS = pa.table({"k": [3, 1, 2], "v": ["c", "a", "b"]})


class Faulty:
    """A file of Parquet whose call of one name fails; `fault` None: none does."""

    def __init__(self, behind: Any, name: str, fault: Exception) -> None:
        self._behind, self._name, self._fault = behind, name, fault

    def __enter__(self) -> Faulty:
        return self

    def __exit__(self, *error: object) -> None:
        self._behind.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        if name == self._name:
            raise self._fault
        return getattr(self._behind, name)


class FaultyParquet:
    """The module, but for one call: of `ParquetFile` or `ParquetWriter`, or of a method of what they make."""

    def __init__(self, kind: str, call: str, fault: Exception) -> None:
        self._kind, self._call, self._fault = kind, call, fault

    def __getattr__(self, name: str) -> Any:
        if name != self._kind:
            return getattr(pq, name)
        if not self._call:
            return self._fail
        return lambda *args, **kwargs: Faulty(getattr(pq, name)(*args, **kwargs), self._call, self._fault)

    def _fail(self, *args: object, **kwargs: object) -> None:
        raise self._fault


@pytest.fixture
def lake() -> Lake:
    lake = Lake.create_on(MemoryStore(), author="test")
    branch = lake.create_pool("p", key="k").branch()
    for _ in range(2):
        branch.append(RECORDS)
    branch.delete(where="v = 'b'")
    return lake


@pytest.fixture(params=FAULTS, ids=lambda fault: f"{type(fault).__name__}-{fault}"[:40])
def fault(request: pytest.FixtureRequest) -> Exception:
    made: Exception = request.param
    return made


def apply(pool: Pool) -> None:
    branch = pool.branch()
    tombstones.apply(branch, now=branch.context.now(), at_once=True)


READS: dict[str, Callable[[Pool], object]] = {
    "scan": lambda pool: pool.at().to_table(),
    "get": lambda pool: pool.at().get(1),
    "explain": lambda pool: pool.at().explain(pool.at().key_range(low=1, high=2)),
    "compact": compact_all,
    "apply tombstones": apply,
}
WRITES: dict[str, Callable[[Pool], object]] = {
    "append": lambda pool: pool.branch().append(RECORDS),
    "replace": lambda pool: pool.branch().replace_with(RECORDS),
    "compact": compact_all,
    "apply tombstones": apply,
}


def state(lake: Lake) -> tuple[int, list[Any]]:
    view = Lake.open_on(lake.store).pool("p").at()
    return view.version, view.to_table().to_pylist()


def refused(act: Callable[[], object]) -> LakeError:
    with pytest.raises(LakeError) as error:
        act()
    assert "\n" not in str(error.value)
    return error.value


@pytest.mark.parametrize("call", ["", "iter_batches", "metadata", "schema_arrow"])
@pytest.mark.parametrize("act", READS.values(), ids=READS.keys())
def test_what_arrow_raises_while_reading_is_an_error_of_the_lake(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, fault: Exception, act: Callable[[Pool], object], call: str
) -> None:
    before = state(lake)
    pool = Lake.open_on(MemoryCopy(lake.store), author="test").pool("p")
    if call == "iter_batches":  # an object whose footer is known is not decoded when it is opened
        pool.at().to_table()
    monkeypatch.setattr(parquet, "pq", FaultyParquet("ParquetFile", call, fault))
    refused(lambda: act(pool))
    monkeypatch.undo()
    assert state(lake) == before


@pytest.mark.parametrize("call", ["", "write_table", "add_key_value_metadata", "close"])
@pytest.mark.parametrize("act", WRITES.values(), ids=WRITES.keys())
def test_what_arrow_raises_while_writing_is_an_error_of_the_lake_and_nothing_lands(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, fault: Exception, act: Callable[[Pool], object], call: str
) -> None:
    before, names = state(lake), {info.name for info in lake.store.list("") if info.name.endswith(".parquet")}
    monkeypatch.setattr(parquet_sink, "pq", FaultyParquet("ParquetWriter", call, fault))
    error = refused(lambda: act(lake.pool("p")))
    monkeypatch.undo()
    assert isinstance(error, Unavailable if isinstance(fault, OSError | MemoryError) else InvalidInput)
    assert state(lake) == before
    assert {i.name for i in lake.store.list("") if i.name.endswith(".parquet")} == names


@pytest.mark.parametrize("call", ["", "write_table", "add_key_value_metadata"])
def test_what_arrow_raises_while_a_checkpoint_is_written_is_an_error_of_the_lake(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, fault: Exception, call: str
) -> None:
    monkeypatch.setattr(checkpoint_write, "pq", FaultyParquet("ParquetWriter", call, fault))
    refused(lambda: checkpoint.write_checkpoint(lake, "p", now=lake.context.now()))
    assert [i.name for i in lake.store.list("") if i.name.endswith(".checkpoint")] == []


@pytest.mark.parametrize("call", ["", "read_row_group", "metadata", "schema_arrow"])
def test_what_arrow_raises_while_a_checkpoint_is_read_is_passed_over_or_an_error_of_the_lake(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, fault: Exception, call: str
) -> None:
    before = state(lake)
    checkpoint.write_checkpoint(lake, "p", now=lake.context.now())
    monkeypatch.setattr(checkpoint_read, "pq", FaultyParquet("ParquetFile", call, fault))
    try:
        found = state(lake)
    except LakeError as error:
        one_line(error)
    else:
        assert found == before


def one_line(error: LakeError) -> None:
    assert "\n" not in str(error)


def test_an_object_that_cannot_be_shown_is_an_error_of_the_lake(lake: Lake) -> None:
    store = lake.store
    for number, noise in enumerate((b"", b"{", b"\xff\xfe", b"PAR1PAR1", b"[1, 2]", b"LKJ\x01\xc1")):
        for name in ("lake.json", f"p/data/{number:027d}.parquet", "p/journal/00000000000000000009.txn"):
            store.put(name, noise or b" ")
            if not (name == "lake.json" and noise == b"[1, 2]"):
                refused(lambda name=name: inspect_object(store, name))  # type: ignore[misc]


def test_an_error_of_the_lake_passes_through_as_it_is() -> None:
    gone = Unavailable("the store is gone for a moment")
    assert unreadable("x", "not readable", gone) is gone
    assert isinstance(unreadable("x", "not readable", FileNotFoundError("x")), ObjectMissing)


class MemoryCopy(MemoryStore):
    """The same objects in a store of its own: no footer of it was read yet."""

    def __init__(self, behind: Any) -> None:
        super().__init__("memory://copy")
        for info in behind.list(""):
            self.put(info.name, behind.get(info.name) or b"")
