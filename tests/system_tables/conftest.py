"""The lake that these tests command."""

from tests.support.command import lake

__all__ = ["lake"]
