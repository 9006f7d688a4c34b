"""Which store a URI names, and what is said of one that names none, or that nobody has credentials for."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput, LakeError
from lake_core.ids import IdSource
from log_lake.lake import Lake
from log_lake.rewriting.compaction import compact
from log_lake.stores import credentials, open_store
from log_lake.stores.memory import MemoryStore


def one_line(error: LakeError) -> str:
    assert "\n" not in str(error)
    return str(error)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///data/lake", "/data/lake"),
        ("file://localhost/data/lake", "/data/lake"),
        ("file:/data/lake", "/data/lake"),
        ("file:////data/lake/", "/data/lake"),
        ("file:///data/a%20b%23c%3Fd", "/data/a b#c?d"),
        ("file:///data/na%C3%AFve", "/data/naïve"),
        ("file:///data/%ff", "/data/\udcff"),
        ("/data/a#b?c", "/data/a#b?c"),
        ("/data/a%20b", "/data/a%20b"),
        ("//data/lake", "/data/lake"),
    ],
)
def test_a_file_uri_is_the_folder_that_it_says(uri: str, path: str) -> None:
    assert open_store(uri).uri == path
    assert open_store(open_store(uri).uri).uri == path


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("file:///data/a#b", "write %23"),
        ("file:///data/a?b", "write %3F"),
        ("file://data/lake", "three slashes: file:///data/lake"),
        ("file://server/share", "names the host 'server'"),
        ("file://", "not an absolute path"),
        ("file:lake", "not an absolute path"),
        ("file:///a%00b", "not an absolute path"),
        ("s3:/bucket/lake", "write s3://bucket/lake"),
        ("gs:bucket", "write gs://bucket"),
        ("s3:///lake", "'' is not the name of a bucket"),
        ("s3://a?b/lake", "'a.b' is not the name of a bucket"),
        ("gs://a#b", "'a#b' is not the name of a bucket"),
        ("s3://bucket/\udcff", "printable text"),
        ("ftp://host/lake", "unknown scheme 'ftp'"),
        ("S3://bucket", "unknown scheme 'S3'"),
        ("", "set LAKE"),
    ],
)
def test_a_uri_that_names_no_store_is_refused_in_one_line(uri: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        open_store(uri)
    one_line(refused.value)


def test_a_lake_in_a_folder_whose_name_is_not_utf_8_is_used_like_any_other(tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    branch = Lake.create(folder).create_pool("p", key="k").branch()
    for _ in range(3):
        branch.append(pa.table({"k": [2, 1]}))
    compact(branch, branch.history.load().state.branches["main"].snapshot.overlapping())
    assert Lake.open(folder).pool("p").at().to_table()["k"].to_pylist() == [1, 1, 1, 2, 2, 2]


# ---------------------------------------------------------------- credentials


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine on which nobody has logged in anywhere, and that is in no cloud."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "FSSPEC_", "GCE_", "CLOUDSDK_", "STORAGE_EMULATOR")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    for protocol in ("s3", "gcs"):
        fsspec.get_filesystem_class(protocol).clear_instance_cache()
    return monkeypatch


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("s3://bucket/lake", "no credentials for S3.*AWS_ACCESS_KEY_ID.*AWS_PROFILE.*FSSPEC_S3_ANON"),
        ("gs://bucket/lake", "no credentials for Google.*GOOGLE_APPLICATION_CREDENTIALS.*gcloud auth"),
    ],
)
def test_without_credentials_it_is_said_what_was_looked_for_and_what_to_set(
    nobody: pytest.MonkeyPatch, uri: str, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        Lake.open(uri)
    one_line(refused.value)


@pytest.mark.parametrize(
    ("uri", "name", "value", "says"),
    [
        ("s3://b/x", "AWS_PROFILE", "nope", "profile .nope. could not be found"),
        ("s3://b/x", "AWS_ACCESS_KEY_ID", "half", "missing: AWS_SECRET_ACCESS_KEY"),
        ("gs://b/x", "GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file", "/no/such/file was not found"),
        ("gs://b/x", "GOOGLE_APPLICATION_CREDENTIALS", "/etc/passwd", "not a valid json"),
    ],
)
def test_credentials_that_are_wrong_are_named(
    nobody: pytest.MonkeyPatch, uri: str, name: str, value: str, says: str
) -> None:
    nobody.setenv(name, value)
    with pytest.raises(InvalidInput, match=says) as refused:
        open_store(uri)
    assert "; correct " in one_line(refused.value)


@pytest.mark.parametrize("path", ["/no/such/file", "missing.json"])
def test_a_key_file_that_is_not_there_is_not_sent_as_a_token(nobody: pytest.MonkeyPatch, path: str) -> None:
    with pytest.raises(InvalidInput, match=f"the key file '{path}' does not exist on this machine"):
        open_store("gs://bucket/x", {"token": path})


def test_who_asks_without_a_name_is_let_through(nobody: pytest.MonkeyPatch) -> None:
    open_store("s3://bucket/x", {"anon": True})
    open_store("gs://bucket/x", {"token": "anon"})
    open_store("s3://bucket/x", {"key": "k", "secret": "s"})
    nobody.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    open_store("gs://bucket/x")


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that takes connections and is no metadata server."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_a_metadata_server_is_looked_for_where_google_says(nobody: pytest.MonkeyPatch, silent: str) -> None:
    nobody.delenv("NO_GCE_CHECK")
    nobody.setenv("GCE_METADATA_HOST", silent)
    assert credentials._has_metadata_server()
    nobody.setenv("GCE_METADATA_HOST", "127.0.0.1:1")
    assert not credentials._has_metadata_server()
    nobody.setenv("GCE_METADATA_HOST", "127.0.0.1:noise")
    assert not credentials._has_metadata_server()


# ---------------------------------------------------------------- clocks


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        (0.0, "says 1970-01-01"),
        (1_399_999_999.0, "says 2014-05-13"),
        (1_400_000_000.0 + 2**32, "says 2150-06-19"),
        (-1e15, "says -1e.15 s since 1970"),
        (float("nan"), "says nan"),
    ],
)
def test_a_clock_that_ids_cannot_hold_is_named(seconds: float, says: str) -> None:
    store = MemoryStore()
    with pytest.raises(InvalidInput, match=rf"{says}.*2014-05-13 to 2150-06-19: set the clock") as refused:
        Lake.create_on(store, ids=IdSource(clock=lambda: seconds))
    one_line(refused.value)
    assert list(store.list("")) == []


def test_the_first_and_the_last_second_of_ids_are_good() -> None:
    for seconds in (1_400_000_000.0, 1_400_000_000.0 + 2**32 - 1):
        assert len(IdSource(clock=lambda: seconds).new()) == 27  # noqa: B023 - called at once


# ---------------------------------------------------------------- texts that are no UTF-8


def test_a_text_that_is_not_utf_8_is_refused_wherever_it_would_be_stored() -> None:
    lake = Lake.create_on(MemoryStore(), author="test")
    bad = os.fsdecode(b"caf\xe9")
    with pytest.raises(InvalidInput, match="udce9"):
        lake.create_pool(bad, key="k")
    pool = lake.create_pool("p", key="k")
    records = pa.table({"k": [1]})
    for write in (
        lambda: pool.branch().append(records, message=bad),
        lambda: pool.branch().append(records, token=bad),
        lambda: pool.branch().delete(where="k = 1", reason=bad),
        lambda: lake.catalog.configure("p", {"description": bad}),
        lambda: lake.catalog.configure("p", {"csv.null": bad}),
    ):
        pool.branch().append(records)
        with pytest.raises(InvalidInput, match=r"'caf\\udce9' is not UTF-8") as refused:
            write()
        one_line(refused.value)
    with pytest.raises(LakeError, match="udce9"):
        lake.pool(bad)
    assert Lake.open_on(lake.store).pool("p").settings.text("description") == ""


@pytest.mark.parametrize(
    "wrong",
    [
        {"nonsense": 1},
        {"client_kwargs": {"nonsense": 1}},
        {"client_kwargs": "x"},
        {"client_kwargs": {"endpoint_url": "not a url"}},
    ],
)
def test_a_wrong_option_of_a_store_is_the_users_and_not_a_store_that_is_away(
    wrong: dict[str, object],
) -> None:
    """An agent would try again; no request is sent."""
    with pytest.raises(InvalidInput, match=r"or the options of the store$") as raised:
        open_store("s3://bucket/lake", {"key": "a", "secret": "b", **wrong})
    assert one_line(raised.value).startswith("s3://bucket/lake: ")


def test_a_lock_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="option 'lock': must be a text"):
        open_store(str(tmp_path), {"lock": 5})


def test_a_path_with_a_zero_byte_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a path cannot have"):
        open_store("/data/a\0b")


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize(("name", "says"), [("loop", "Too many levels"), ("x" * 300, "File name too long")])
def test_a_path_that_can_be_none_of_a_folder_is_refused_at_once(
    tmp_path: Path, scheme: str, name: str, says: str
) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InvalidInput, match=rf"^lake '.*': {says}.*; name another path$"):
        open_store(f"{scheme}{tmp_path / name}")
    assert open_store(str(tmp_path / "not yet")).uri.endswith("not yet")
