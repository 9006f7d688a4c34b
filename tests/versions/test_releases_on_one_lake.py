"""The last release and this program on one lake: each reads what the other wrote, and goes on with it.

What the last release would get wrong has a format that it does not know, so it says "upgrade this program" and
changes nothing (docs/format.md, "When a format is raised").  A lake that it made keeps its format version until
`lake upgrade`, so both programs write to it.  The release comes from git's history; a shallow clone
skips.  `last_release.tar.gz` is a lake that it wrote, kept, so that the bytes are read without git, too.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from tests.support.programs import THIS, Program, release

LAST = "6a8b922"
"""The commit of the last release.  After a release: put its commit here, and make the kept lake anew with it."""
KEPT = Path(__file__).parent / "last_release.tar.gz"
FORMATS = ("parquet", "zng", "zst")
READ = [f"scan {pool}" for pool in (*FORMATS, "newest", "sums", "events")]


@pytest.fixture(scope="module")
def last(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The last release."""
    program = release(LAST, "lake_core.cli.main", into=tmp_path_factory.mktemp("last"))
    if program is None:
        pytest.skip(f"the history of git does not reach {LAST}, as in a shallow clone: git fetch --unshallow")
    return program


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Five files of three records each; those of one are also in the next."""
    for number in range(5):
        records = [{"ts": number + at, "n": number, "who": {"id": at}, "at": [1.5, None]} for at in range(3)]
        (tmp_path / f"{number}.ndjson").write_text("".join(json.dumps(one) + "\n" for one in records))
    return tmp_path


def written(files: Path) -> list[str]:
    """Commands that put every kind of stored thing into a lake."""
    load = {number: files / f"{number}.ndjson" for number in range(5)}
    return [
        *(f"create {format} --key ts --format {format}" for format in FORMATS),
        "create newest --key ts --kind upsert",
        "create sums --key ts --kind aggregate --aggregate n=sum",
        "create events --key ts",
        "create gone --key ts",
        *(f"load {pool} {load[n]} --token t{n}" for pool in (*FORMATS, "newest", "sums") for n in (0, 1)),
        *(f"compact {pool} --strategy full" for pool in (*FORMATS, "newest", "sums")),
        *(f"load {pool} {load[2]}" for pool in (*FORMATS, "newest", "sums")),
        *(f"delete {pool} --where ts=2" for pool in FORMATS),
        "checkpoint zng",
        f"load events {load[0]}",
        "branch events side",
        f"load events {load[1]} --branch side",
        "delete events --branch side --where ts=1",
        "merge events side",
        f"load events {load[2]}",
        "revert events 6",
        f"replace events {load[3]} --from 3 --to 6",
        "branch events later",
        f"load events {load[4]} --branch later",
        "compact events --strategy full",
        "tag events kept",
        f"load gone {load[0]}",
        "drop gone --yes",
    ]


PENDING = ["erase events --where ts=0 --yes"]
"""The tag `kept` holds it."""
GONE_ON = [
    "merge events later",
    "tag events -d kept",
    *(f"tombstones {pool}" for pool in FORMATS),
    *(f"compact {pool} --strategy full" for pool in (*FORMATS, "newest", "sums", "events")),
    *(f"checkpoint {pool}" for pool in (*FORMATS, "newest", "sums", "events")),
    *(f"vacuum {pool} --grace 0s --every-name" for pool in (*FORMATS, "newest", "sums")),
    "restore gone",
    "drop gone --yes",
    "vacuum --dropped --grace 0s",
]


def damage(reports: list[str]) -> list[str]:
    """The lines of `lake fsck` that report damage."""
    return [line for report in reports for line in report.splitlines() if line.startswith("damage")]


@pytest.mark.slow
def test_the_last_release_reads_a_lake_of_this_program_and_goes_on_with_it(
    last: Program, files: Path, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    last.do(lake, "init")
    THIS.do(lake, *written(files))
    seen = THIS.do(lake, *READ)
    assert last.do(lake, *READ) == seen
    assert not damage(last.do(lake, "fsck"))
    last.do(lake, *GONE_ON)
    after = THIS.do(lake, *READ)
    assert after[:-1] == seen[:-1]
    assert after[-1].count('"n":4') == seen[-1].count('"n":4') + 3  # what the branch `later` had loaded
    assert last.do(lake, *READ) == after
    assert not damage(THIS.do(lake, "fsck"))


@pytest.mark.slow
def test_this_program_reads_a_lake_of_the_last_release_and_goes_on_with_it(
    last: Program, files: Path, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    last.do(lake, "init", *written(files))
    seen = last.do(lake, *READ)
    assert THIS.do(lake, *READ) == seen
    assert not damage(THIS.do(lake, "fsck"))
    THIS.do(lake, *GONE_ON)
    after = THIS.do(lake, *READ)
    assert after[:-1] == seen[:-1]
    assert after[-1].count('"n":4') == seen[-1].count('"n":4') + 3
    assert last.do(lake, *READ) == after


@pytest.mark.slow
def test_the_last_release_does_not_go_on_with_an_erasure_that_means_only_what_was_there(
    last: Program, files: Path, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    last.do(lake, "init")
    THIS.do(lake, *written(files))
    (pending,) = THIS.run(lake, *PENDING)
    assert pending.status == 11, pending
    THIS.do(lake, f"load events {files / '0.ndjson'}", "tag events -d kept")
    seen = THIS.do(lake, *READ)
    assert '"ts":0' in seen[-1]
    for refused in last.run(lake, *PENDING, "erasures events"):
        assert refused.status == 8
        assert "upgrade this program" in refused.err
    assert last.do(lake, *READ) == seen
    THIS.do(lake, *PENDING)
    assert THIS.do(lake, *READ) == seen


@pytest.mark.slow
def test_the_last_release_refuses_a_newer_lake_and_changes_nothing(
    last: Program, files: Path, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    last.do(lake, "init", "create p --key ts", f"load p {files / '0.ndjson'}")
    THIS.do(lake, "upgrade", f"load p {files / '1.ndjson'}")
    stored = {path: path.read_bytes() for path in lake.rglob("*") if path.is_file()}
    for refused in last.run(lake, "scan p", f"load p {files / '2.ndjson'}", "compact p", "checkpoint p"):
        assert refused.status == 8
        assert "written by a newer version (format 3); upgrade this program" in refused.err
    assert {path: path.read_bytes() for path in lake.rglob("*") if path.is_file()} == stored


def test_a_lake_that_the_last_release_wrote_is_read(tmp_path: Path) -> None:
    with tarfile.open(KEPT) as kept:
        kept.extractall(tmp_path, filter="data")
    lake = tmp_path / "lake"
    assert THIS.do(lake, *READ) == json.loads((tmp_path / "read.json").read_text())
    assert not damage(THIS.do(lake, "fsck"))
    (resumed,) = THIS.run(lake, *PENDING)
    assert resumed.status == 11, resumed
    THIS.do(lake, "tag events -d kept", *PENDING, *GONE_ON[2:])
    assert not damage(THIS.do(lake, "fsck"))
