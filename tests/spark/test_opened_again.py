"""A thread that opens a pool again goes on from the state and the footers that it has; changes count at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from lake_core.errors import NotFound
from log_lake.lake import Lake
from spark_apps.datasource import options as opts


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1]}))
    return lake


def asked(lake: Lake, **options: str) -> dict[str, str]:
    return {"lake": lake.store.uri, "path": "p", **options}


def test_a_pool_that_is_opened_again_keeps_its_history_and_its_store(lake: Lake) -> None:
    first, second = opts.open_branch(asked(lake)), opts.open_view(asked(lake))
    assert second.history is first.history
    assert second.store is first.store  # which the footers are kept for


def test_a_pool_opened_again_shows_what_others_wrote_meanwhile(lake: Lake) -> None:
    assert opts.open_view(asked(lake)).records == 1
    lake.pool("p").branch().append(pa.table({"k": [2, 3]}))
    assert opts.open_view(asked(lake)).records == 3


def test_changed_settings_count_at_the_next_opening(lake: Lake) -> None:
    before = opts.open_branch(asked(lake))
    lake.configure_pool("p", {"load.memory": "1MiB"})
    after = opts.open_branch(asked(lake))
    assert before.config.settings == {}
    assert after.config.settings == {"load.memory": "1MiB"}


def test_metadata_are_those_of_the_call(lake: Lake) -> None:
    for name in ("a", "b"):
        branch = opts.open_branch(asked(lake, **{"meta.who": name}))
        assert branch.context.metadata["who"] == name


def test_a_pool_of_the_same_name_that_was_made_anew_is_another_pool(lake: Lake) -> None:
    old = opts.open_branch(asked(lake))
    lake.drop_pool("p")
    with pytest.raises(NotFound):
        opts.open_branch(asked(lake))
    lake.create_pool("p", key="k")
    new = opts.open_branch(asked(lake))
    assert new.config.id != old.config.id
    assert opts.open_view(asked(lake)).records == 0


def test_each_thread_has_pools_of_its_own(lake: Lake) -> None:
    found = []
    opened = opts.open_branch(asked(lake))
    thread = threading.Thread(target=lambda: found.append(opts.open_branch(asked(lake))))
    thread.start()
    thread.join()
    assert found[0].history is not opened.history


def test_a_thread_keeps_the_pools_that_it_used_last(lake: Lake) -> None:
    first = opts.open_branch(asked(lake))
    for number in range(opts.POOLS_KEPT):
        lake.create_pool(f"p{number}", key="k")
        opts.open_branch(asked(lake, path=f"p{number}"))
    assert opts.open_branch(asked(lake)).history is not first.history
