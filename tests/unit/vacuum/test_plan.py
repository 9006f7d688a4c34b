"""What keeps a removed object, at the boundaries of versions; and what a vacuum may still take when it begins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lake_core.errors import PlanAgain
from lake_core.history import Draft, PoolState
from lake_core.history.removal import Removal
from lake_core.history.vacuuming import check_vacuum
from lake_core.ids import IdSource
from lake_core.records import BeginVacuum
from log_lake.vacuum.plan import Keeping, choose

ID = IdSource(clock=lambda: 1_800_000_000.0).new()


@pytest.mark.parametrize(("removed_in", "kept_by"), [(5, None), (6, "lease"), (7, "lease")])
def test_a_lease_holds_what_the_next_version_removed(removed_in: int, kept_by: str | None) -> None:
    """A reader of version 5 needs what version 6 removed, and not what version 5 itself removed."""
    limits = Keeping(safe=100, leased=5, branches=frozenset(), tags=frozenset())
    assert limits.keeps(ID, Removal(removed_in, 0)) == kept_by


@pytest.mark.parametrize(("removed_in", "kept_by"), [(9, None), (10, None), (11, "grace")])
def test_the_newest_version_that_is_old_enough_keeps_nothing(removed_in: int, kept_by: str | None) -> None:
    limits = Keeping(safe=10, leased=None, branches=frozenset(), tags=frozenset())
    assert limits.keeps(ID, Removal(removed_in, 0)) == kept_by


def test_branches_and_tags_keep_what_is_old_enough() -> None:
    by_branch = Keeping(safe=10, leased=None, branches=frozenset({ID}), tags=frozenset({ID}))
    by_tag = replace(by_branch, branches=frozenset())
    assert (by_branch.keeps(ID, Removal(1, 0)), by_tag.keeps(ID, Removal(1, 0))) == ("branch", "tag")
    assert choose([(ID, Removal(1, 0))], by_tag) == ((), {"tag": 1})


def begins(*, planned_on: int, removed_in: int | None) -> None:
    """A vacuum that was planned on a version begins on a state that removed its object in another one."""
    state = PoolState.empty(min_changes=1)
    if removed_in is not None:
        state = replace(state, removed=state.removed.with_removed({ID: Removal(removed_in, 0)}))
    check_vacuum(state, Draft("x", "", planned_on, "me", (BeginVacuum((ID,)),)))


@pytest.mark.parametrize("removed_in", [0, 8, 9])
def test_a_vacuum_begins_with_what_was_removed_by_then(removed_in: int) -> None:
    begins(planned_on=9, removed_in=removed_in)


@pytest.mark.parametrize("removed_in", [None, 10, 11])
def test_a_vacuum_does_not_begin_with_what_was_removed_since_it_was_planned(removed_in: int | None) -> None:
    """The object came back and was removed again: readers of the versions between may need it."""
    with pytest.raises(PlanAgain, match="plan again"):
        begins(planned_on=9, removed_in=removed_in)
