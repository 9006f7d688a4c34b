"""The lakes that the view shows, opened when they are first asked for.

The server of the view names them.  A page can ask for no other: the server opens lakes with its own credentials,
and names that come from a browser must not choose what it opens (decision 90).  The page gets a key of each
(`key_of`), and an address without what may be a secret in it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lake_core.errors import LakeError, NotFound
from lake_core.phrases import did_you_mean
from log_lake.lake import Lake
from log_lake.view.addresses import is_uri, key_of, without_user
from log_lake.view.layout import Layouts
from log_lake.view.overview import Overview
from log_lake.view.verdicts import Verdicts

REOPEN_SECONDS = 300.0
"""After how many seconds a lake is opened again. Its connection may have changed, and the remembered states of
pools take memory."""


@dataclass(frozen=True)
class LakeChoice:
    """A lake in the page's list: its key, its name as it is shown, and the name that a run gets.

    `run` is None if the address may hold a secret, because Airflow stores the parameters of a run.
    """

    key: str
    label: str
    run: str | None

    @classmethod
    def of(cls, key: str, name: str) -> LakeChoice:
        """Returns the choice for the lake with this name."""
        label = without_user(name) if is_uri(name) else name
        return cls(key, label, name if label == name else None)


@dataclass
class ShownLake:
    """A lake with its caches, and the time at which it was opened."""

    overview: Overview
    verdicts: Verdicts
    layouts: Layouts = field(default_factory=Layouts)
    lake: Lake | None = None
    opened: float = 0.0
    failure: LakeError | None = None
    failed: float = 0.0
    opening: threading.Lock = field(default_factory=threading.Lock)


class Lakes:
    """The lakes by their keys; safe to use from several threads.

    `names`: the names by key; or only the names, whose keys `key_of` then makes.
    """

    def __init__(
        self,
        names: Sequence[str] | Mapping[str, str],
        *,
        opener: Callable[[str], Lake] = Lake.open,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        by_key = names if isinstance(names, Mapping) else {key_of(name): name for name in names}
        self._names = dict(by_key)
        self.choices = tuple(LakeChoice.of(key, name) for key, name in self._names.items())
        self._opener, self._clock = opener, clock
        self._shown = {key: ShownLake(Overview(clock), Verdicts(clock)) for key in self._names}

    def without_users(self, text: str) -> str:
        """Returns the text, with addresses of lakes in the form in which they may be shown."""
        for choice, name in zip(self.choices, self._names.values(), strict=True):
            text = text.replace(name, choice.label)
        return text

    def shown(self, key: str) -> tuple[Lake, ShownLake]:
        """Returns the lake with its caches.  Raises NotFound if it is not shown, and what opening it raises."""
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
