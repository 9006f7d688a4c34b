"""A lake that was moved is published anew at its new address; what the old table names is not followed."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from lake_core.errors import InvalidInput, PublishedElsewhere
from log_lake.agents.compact.publication import publication_due
from log_lake.iceberg_catalog.ages import PublicationAges
from log_lake.iceberg_catalog.tables import loaded, table_of
from log_lake.lake import Lake
from log_lake.publish.lag import publication
from log_lake.publish.run import PUBLISHED, UNCHANGED, is_publication, publish_iceberg
from log_lake.stores.read_only import ReadOnlyStore
from tests.support.iceberg import check_published


def a_moved_lake(folder: Path) -> Lake:
    """A lake with a published pool, in another folder than when it was published."""
    lake = Lake.create(folder / "before")
    pool = lake.create_pool("logs", key="k")
    pool.branch().append(pa.table({"k": [1, 2]}))
    lake.configure_pool("logs", {"publish.iceberg": "beside"})
    publish_iceberg(pool)
    shutil.move(folder / "before", folder / "after")
    return Lake.open(folder / "after")


def test_a_moved_table_is_published_anew(tmp_path: Path) -> None:
    pool = a_moved_lake(tmp_path).pool("logs")
    assert "another place" in publication_due(pool, branch="main")
    with pytest.raises(
        PublishedElsewhere, match=r"/before/.*, where the lake was before.*lake publish"
    ) as error:
        publication(pool)
    assert "\n" not in str(error.value)
    done = check_published(pool)
    assert (done.outcome, done.number, done.added, done.location) == (
        PUBLISHED,
        2,
        1,
        f"{tmp_path}/after/{pool.config.id}/published/iceberg/main",
    )
    assert sum(map(is_publication, pool.tags.values())) == 1, "the tag of the old place is gone"
    assert publish_iceberg(pool).outcome == UNCHANGED
    assert not publication_due(pool, branch="main")


def test_the_catalog_serves_a_moved_lake(tmp_path: Path) -> None:
    lake = a_moved_lake(tmp_path)
    table = json.loads(loaded(table_of(lake, "logs"), PublicationAges()).text)
    assert table["location"].startswith(f"{tmp_path}/after/")
    assert "before" not in json.dumps(table)


def test_a_table_outside_that_names_another_place_costs_that_place_no_tag(tmp_path: Path) -> None:
    """Who may write a folder outside of the lake, or a copy of such a folder, does not end another publication."""
    pool = Lake.create(tmp_path / "lake").create_pool("logs", key="k")
    pool.branch().append(pa.table({"k": [1]}))
    beside, outside = publish_iceberg(pool), publish_iceberg(pool, to=f"{tmp_path}/outside")
    kept = {name for name, tag in pool.tags.items() if tag.reason.endswith(beside.location)}
    metadata = tmp_path / "outside" / "metadata" / "v1.metadata.json"
    metadata.write_text(
        json.dumps(json.loads(metadata.read_text()) | {"location": beside.location}), encoding="utf-8"
    )
    assert publish_iceberg(pool, to=outside.location).outcome == PUBLISHED
    assert kept
    assert kept <= pool.tags.keys()
    assert publish_iceberg(pool).outcome == UNCHANGED


def test_a_process_that_may_only_read_says_what_to_do(tmp_path: Path) -> None:
    moved = a_moved_lake(tmp_path)
    lake = Lake.open_on(ReadOnlyStore(moved.store))
    with pytest.raises(PublishedElsewhere, match="publish the pool again"):
        loaded(table_of(lake, "logs"), PublicationAges())


def test_a_table_of_another_pool_at_another_place_is_not_replaced(tmp_path: Path) -> None:
    lake = a_moved_lake(tmp_path)
    other = lake.create_pool("other", key="k")
    other.branch().append(pa.table({"k": [1]}))
    folder = f"{lake.pool('logs').config.id}/published/iceberg/main"
    with pytest.raises(InvalidInput, match="publish to another folder"):
        publish_iceberg(other, to=f"{tmp_path}/after/{folder}")
    assert dataclasses.asdict(publish_iceberg(lake.pool("logs")))["outcome"] == PUBLISHED
