"""A lake whose store does what a script says."""

from __future__ import annotations

import pytest

from log_lake.lake import Lake
from tests.support.stores import ScriptedStore


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


@pytest.fixture
def lake(store: ScriptedStore) -> Lake:
    return Lake.create_on(store, author="test")
