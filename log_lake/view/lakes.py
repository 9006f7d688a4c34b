"""The lakes that the view shows, opened when they are first asked for.

The server of the view names them.  A page can ask for no other: the server opens lakes with its own credentials,
and names that come from a browser must not choose what it opens (decision 90).  The page gets a key of each
(`key_of`), and an address without what may be a secret in it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lake_core.errors import LakeError, NotFound
from lake_core.phrases import did_you_mean
from log_lake.lake import Lake
from log_lake.view.addresses import is_uri, key_of, without_user
from log_lake.view.layout import Layouts
from log_lake.view.overview import Overview

REOPEN_SECONDS = 300.0
"""A lake is opened again after this time: its connection may have changed, and states of pools that moved meanwhile
take memory."""


@dataclass(frozen=True)
class LakeChoice:
    """A lake as the page offers it: its key, what is shown of its name, and what a run is told.

    `run` is None if the address may hold a secret, since Airflow keeps what a run is told.
    """

    key: str
    label: str
    run: str | None

    @classmethod
    def of(cls, name: str) -> LakeChoice:
        """Of the lake of this name."""
        label = without_user(name) if is_uri(name) else name
        return cls(key_of(name), label, name if label == name else None)


@dataclass
class ShownLake:
    """A lake, what is cached of it, and when it was opened."""

    overview: Overview
    layouts: Layouts = field(default_factory=Layouts)
    lake: Lake | None = None
    opened: float = 0.0
    failure: LakeError | None = None
    failed: float = 0.0
    opening: threading.Lock = field(default_factory=threading.Lock)


class Lakes:
    """The lakes by their keys; several threads may ask."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        opener: Callable[[str], Lake] = Lake.open,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._names = {key_of(name): name for name in names}
        self.choices = tuple(map(LakeChoice.of, self._names.values()))
        self._opener, self._clock = opener, clock
        self._shown = {key: ShownLake(Overview(clock)) for key in self._names}

    def without_users(self, text: str) -> str:
        """The text, in which the addresses of lakes are as they may be shown."""
        for choice, name in zip(self.choices, self._names.values(), strict=True):
            text = text.replace(name, choice.label)
        return text

    def shown(self, key: str) -> tuple[Lake, ShownLake]:
        """The lake, and what is cached of it.  Raises NotFound if it is not shown, and what opening it raises."""
        shown = self._shown.get(key)
        if shown is None:
            raise NotFound(f"lake {key!r} is not shown here; {did_you_mean(key, tuple(self._names))}")
        asked = self._clock()
        with shown.opening:
            # who waited while it failed would wait as long again
            if shown.failure is not None and asked < shown.failed:
                raise shown.failure
            if shown.lake is None or self._clock() - shown.opened >= REOPEN_SECONDS:
                try:
                    shown.lake, shown.opened, shown.failure = (
                        self._opener(self._names[key]),
                        self._clock(),
                        None,
                    )
                except LakeError as error:
                    shown.failure, shown.failed = error, self._clock()
                    raise
            return shown.lake, shown
