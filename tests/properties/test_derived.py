"""A derived pool holds what its query has over the version of the source that it names, whatever happens there.

.venv/bin/python -m pytest tests/properties/test_derived.py -q --hypothesis-seed=0
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.derived_histories import run

KINDS = ("append", "upsert", "aggregate")


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_derived_pool_is_its_query_over_the_version_that_it_names(kind: str, seed: int) -> None:
    run(kind, seed, steps=6)
