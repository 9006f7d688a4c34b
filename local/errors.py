"""The one error of this package: a line that says what, where and what to do."""

from __future__ import annotations


class LocalError(Exception):
    """An error on this machine; its message is for the user at the keyboard."""
