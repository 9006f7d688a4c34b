"""The lake that these tests command; properties run the same examples every time."""

from hypothesis import settings

from tests.support.command import lake

settings.register_profile("ingest", derandomize=True, database=None, deadline=None, max_examples=200)
settings.load_profile("ingest")

__all__ = ["lake"]
