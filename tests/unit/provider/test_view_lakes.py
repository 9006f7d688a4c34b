"""How the view names lakes: by keys, without what may be a secret in their addresses."""

from __future__ import annotations

import pytest

from airflow_lake.links import address
from airflow_lake.reach import view_lakes
from lake_core.errors import InvalidInput, NotFound
from log_lake.lake import Lake
from log_lake.view.addresses import key_of, without_user
from log_lake.view.lakes import Lakes

SECRETS = (
    "s3://AKIA1:pa@ss@bucket/lake",
    "s3://AKIA1@bucket/lake",
    "s3://bucket/lake?token=ABC",
    "gs://bucket/lake#secret=ABC",
)


@pytest.mark.parametrize("name", SECRETS)
def test_a_lake_whose_address_may_hold_a_secret_is_shown_without_it_and_no_run_is_told(name: str) -> None:
    (choice,) = Lakes([name]).choices
    assert choice.run is None
    told = f"{choice} {address('jobs', None, lake=name)}"
    assert not [word for word in ("AKIA1", "pa@ss", "ss@", "ABC", "secret") if word in told]
    assert "bucket" in choice.label


def test_the_error_of_such_a_lake_does_not_show_it_either() -> None:
    def refuses(name: str) -> Lake:
        raise InvalidInput(f"lake {name!r}: a user and a password do not belong into it")

    lakes = Lakes(SECRETS, opener=refuses)
    for choice in lakes.choices:
        with pytest.raises(InvalidInput) as refused:
            lakes.shown(choice.key)
        shown = lakes.without_users(str(refused.value))
        assert not [word for word in ("AKIA1", "pa@ss", "ABC") if word in shown]


def test_a_lake_is_found_by_its_key_and_not_by_its_address() -> None:
    names = view_lakes({"LAKE_VIEW_LAKES": "lake_own s3://bucket/lake"})
    opened: list[str] = []

    def refuses(name: str) -> Lake:
        opened.append(name)
        raise NotFound("there is no lake")

    lakes = Lakes(names, opener=refuses)
    own, other = lakes.choices
    assert (own.key, own.label, own.run) == ("lake_own", "lake_own", "lake_own")
    assert (other.label, other.run) == ("s3://bucket/lake", "s3://bucket/lake")
    assert other.key == key_of("s3://bucket/lake/") != key_of("s3://bucket/lake2")
    with pytest.raises(NotFound):
        lakes.shown(other.key)
    with pytest.raises(NotFound, match="is not shown here"):
        lakes.shown("s3://bucket/lake")
    assert opened == ["s3://bucket/lake"]
    assert without_user("/lakes/a@b/c") == "/lakes/a@b/c"
