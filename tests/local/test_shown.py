"""What `make up` prints of an Airflow that has no lake to show."""

from __future__ import annotations

from pathlib import Path

from local.__main__ import no_lake


def test_without_a_lake_it_says_how_to_make_one_or_to_show_that_of_the_demo(
    tmp_path: Path,
) -> None:
    make = f"          there is no lake yet; make one: .venv/bin/lake init --lake {tmp_path}/lake"
    demo = tmp_path / "demo"
    assert no_lake(f"{tmp_path}/lake", demo) == [make]
    demo.mkdir()
    assert no_lake(f"{tmp_path}/lake", demo) == [
        make,
        f"          or show the lake of make demo: make down && LAKE={demo} make up",
    ]
