"""lake erase, lake erasures, lake verify-erasure, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import INVALID_INPUT, NOT_FOUND, Command

INCOMPLETE = 11
ANN = "who = 'ann'"


@pytest.fixture
def people(lake: Command) -> Command:
    lake("create", "p", "--key", "k")
    for n, who in enumerate(["ann", "bob", "cid"]):
        lake("load", "p", lake.file(f"{n}.ndjson", f'{{"k": {n}, "who": "{who}"}}\n'))
    return lake


def test_an_erasure_gives_a_receipt_that_can_be_checked(people: Command, tmp_path: Path) -> None:
    lake, file = people, str(tmp_path / "receipt.json")
    assert "would rewrite 1 object" in lake.run("erase", "p", "--where", ANN, "--dry-run").err
    done = lake.run("erase", "p", "--where", ANN, "--yes", "-o", file)
    assert "is done: deleted 1 object" in done.err
    assert lake.scan("p") == [{"k": 1, "who": "bob"}, {"k": 2, "who": "cid"}]
    assert Path(file).stat().st_mode & 0o777 == 0o600  # it holds the condition
    receipt = json.loads(Path(file).read_text())
    assert (receipt["status"], receipt["where"], len(receipt["erased"])) == ("done", ANN, 1)
    assert "holds" in lake.run("verify-erasure", file).err
    (listed,) = lake("erasures", "--json").records
    assert (listed["erasure"], listed["status"]) == (receipt["id"], "done")


def test_a_key_is_erased(people: Command) -> None:
    lake = people
    (receipt,) = lake("erase", "p", "--key", "1", "--yes", "--json").records
    assert receipt["status"] == "done"
    assert [record["k"] for record in lake.scan("p")] == [0, 2]


def test_what_is_held_is_named_and_the_erasure_goes_on_once_it_is_released(people: Command) -> None:
    lake = people
    lake("tag", "p", "keep")
    failed = lake.run("erase", "p", "--where", ANN, "--yes")
    assert failed.status == INCOMPLETE
    assert "because of tag keep" in failed.err
    assert "--resume" in failed.err
    (listed,) = lake("erasures", "p", "--json").records
    assert (listed["status"], listed["held"]) == ("pending", 1)
    dry = lake.run("erase", "p", "--resume", listed["erasure"], "--dry-run").err
    assert "would rewrite 0 objects" in dry
    assert "1 object would stay, because of tag keep" in dry
    (dry,) = lake("erase", "p", "--where", ANN, "--dry-run", "--json").records
    assert [one["by"] for one in dry["held"]] == ["tag keep"]
    lake("tag", "p", "-d", "keep")
    (receipt,) = lake("erase", "p", "--resume", listed["erasure"], "--yes", "--json").records
    assert (receipt["status"], receipt["id"]) == ("done", listed["erasure"])


def test_a_receipt_that_does_not_hold_says_why(people: Command, tmp_path: Path) -> None:
    lake, file = people, str(tmp_path / "receipt.json")
    lake("erase", "p", "--where", ANN, "--yes", "-o", file)
    lake("load", "p", lake.file("again.ndjson", '{"k": 7, "who": "ann"}\n'))
    failed = lake.run("verify-erasure", file)
    assert failed.status == INCOMPLETE
    assert "of branch main" in failed.out
    (said,) = lake.run("verify-erasure", file, "--json").records
    assert (said["holds"], len(said["findings"])) == (False, 1)


def test_what_names_no_records_is_refused(people: Command, tmp_path: Path) -> None:
    lake = people
    assert "say which records" in lake.fails(INVALID_INPUT, "erase", "p", "--yes")
    assert "either --key" in lake.fails(INVALID_INPUT, "erase", "p", "--key", "1", "--to", "2", "--yes")
    assert "--resume ID alone" in lake.fails(
        INVALID_INPUT, "erase", "p", "--where", ANN, "--resume", "x", "--yes"
    )
    assert "add --yes" in lake.fails(INVALID_INPUT, "erase", "p", "--where", ANN)
    assert "no erasure" in lake.fails(NOT_FOUND, "erase", "p", "--resume", "x", "--yes")
    missing = str(tmp_path / "none.json")
    assert "No such file" in lake.fails(INVALID_INPUT, "verify-erasure", missing)
    assert "not the receipt" in lake.fails(8, "verify-erasure", lake.file("x.json", "{}"))


def test_a_range_before_the_first_record_is_refused(lake: Command) -> None:
    lake("create", "empty", "--key", "k")
    for words in (("--key", "1"), ("--from", "a", "--to", "b")):
        failed = lake.fails(INVALID_INPUT, "erase", "empty", *words, "--yes")
        assert "no record tells the type of the key field 'k' yet" in failed
    assert lake("erasures", "--json").records == []
    lake("set", "empty", "type.k=int64")
    (receipt,) = lake("erase", "empty", "--key", "1", "--yes", "--json").records
    assert (receipt["status"], receipt.get("erased", [])) == ("done", [])
