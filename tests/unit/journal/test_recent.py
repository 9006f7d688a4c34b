"""The ids that were committed lately: what every reader of the history knows alike."""

from __future__ import annotations

import pytest

from lake_core.errors import Corrupt
from lake_core.journal.limits import JOURNAL_LIMITS
from lake_core.journal.recent import Recent, generation

GENERATION = JOURNAL_LIMITS.generation_versions


def after(upto: int, start: Recent | None = None) -> Recent:
    """The ids of entries up to `upto`, each of which holds one, `id of <n>`."""
    recent = start or Recent()
    for n in range(recent.version + 1, upto + 1):
        recent = recent.after(n, [f"id of {n}"])
    return recent


def test_nothing_is_known_of_an_empty_journal() -> None:
    assert Recent().version_of("id") is None
    assert list(Recent().items()) == []


def test_an_id_is_found_with_its_entry() -> None:
    recent = Recent().after(1, ["a", "b"]).after(2, ["c"])
    assert [recent.version_of(id) for id in "abcd"] == [1, 1, 2, None]


def test_an_id_that_comes_a_second_time_is_corrupt() -> None:
    recent = after(3)
    with pytest.raises(Corrupt, match="id of 2 is in the history already, in entry 2"):
        recent.after(4, ["new", "id of 2"])
    with pytest.raises(Corrupt, match="twice"):
        recent.after(4, ["twice", "twice"])


def test_an_id_of_the_generation_before_is_known_and_comes_once() -> None:
    recent = after(GENERATION + 1)
    assert recent.version_of("id of 5") == 5
    with pytest.raises(Corrupt):
        recent.after(GENERATION + 2, ["id of 5"])


def test_ids_are_forgotten_when_the_second_generation_after_theirs_begins() -> None:
    last = after(2 * GENERATION - 1)
    assert last.version_of("id of 1") == 1
    next_ = after(2 * GENERATION, last)
    assert next_.version_of(f"id of {GENERATION - 1}") is None
    assert next_.version_of(f"id of {GENERATION}") == GENERATION
    assert next_.version_of(f"id of {2 * GENERATION}") == 2 * GENERATION


@pytest.mark.parametrize(
    "n", [1, GENERATION - 1, GENERATION, 2 * GENERATION - 1, 2 * GENERATION, 3 * GENERATION]
)
def test_recent_ids_reach_as_far_back_as_every_id_is_known(n: int) -> None:
    recent = after(n)
    for at in range(1, n + 1):
        assert recent.reaches(at) == (recent.version_of(f"id of {at}") is not None)
    assert recent.reaches(n + 1)


def test_a_value_is_not_changed_by_what_follows() -> None:
    before = after(GENERATION - 1)
    after(2 * GENERATION, before)
    assert before.version_of("id of 1") == 1


@pytest.mark.parametrize("n", [0, 7, GENERATION - 1, GENERATION, 2 * GENERATION + 3])
def test_what_is_kept_and_read_back_goes_on_alike(n: int) -> None:
    folded = after(n)
    kept = Recent.of(n, folded.items())
    for more in (0, 1, GENERATION, 2 * GENERATION):
        assert sorted(after(n + more, kept).items()) == sorted(after(n + more, folded).items())


def test_generations_are_cut_by_number_alone() -> None:
    assert [
        generation(n, limits=JOURNAL_LIMITS) for n in (0, GENERATION - 1, GENERATION, 2 * GENERATION)
    ] == [0, 0, 1, 2]
