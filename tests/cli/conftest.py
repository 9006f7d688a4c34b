"""The lake that these tests command."""

from tests.cli.command import lake, three_loads

__all__ = ["lake", "three_loads"]
