"""The lake that these tests command."""

from tests.support.command import lake, three_loads

__all__ = ["lake", "three_loads"]
