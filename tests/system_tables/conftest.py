"""The lake that these tests command."""

from tests.cli.command import lake

__all__ = ["lake"]
