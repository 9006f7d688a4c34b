"""The one error of this package: a line that says what, where and what to do."""

from __future__ import annotations


class LocalError(Exception):
    """Something on this machine is in the way; the message is for the person at the keyboard."""
