"""What `make up` prints of an Airflow that has no lake to show."""

from __future__ import annotations

from pathlib import Path

import pytest

from local import services
from local.__main__ import no_lake


def test_without_a_lake_it_says_how_to_make_one_or_to_show_that_of_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "RUN_DIR", tmp_path)
    make = f"          there is no lake yet; make one: .venv/bin/lake init --lake {tmp_path}/lake"
    assert no_lake(f"{tmp_path}/lake") == [make]
    demo = tmp_path / services.DEMO_LAKE
    demo.mkdir(parents=True)
    assert no_lake(f"{tmp_path}/lake") == [
        make,
        f"          or show the lake of make demo: make down && LAKE={demo} make up",
    ]
