"""Opens one pool's history on any store, with retries that do not sleep."""

from __future__ import annotations

from lake_core.history import HISTORY_LIMITS, History, HistoryLimits
from lake_core.journal import Retry
from lake_core.keys import PoolKey
from lake_core.schemas import APPEND, Rule
from lake_core.store import Store
from tests.support.clocks import DAY

KEY = PoolKey.parse("k")
NOW = 1_000.0


def retry(*, races: int = 50, repeats: int = 4) -> Retry:
    """Returns retries that follow each other at once."""
    return Retry(races=races, repeats=repeats, sleep=lambda seconds: None)


def history(
    store: Store,
    *,
    clock: float = NOW,
    key: PoolKey = KEY,
    rule: Rule = APPEND,
    races: int = 50,
    token_keep: float = 30 * DAY,
    limits: HistoryLimits = HISTORY_LIMITS,
) -> History:
    """Returns the history of the pool `P` for a process that has read nothing yet."""
    return History(
        store,
        pool_id="P",
        key=key,
        rule=rule,
        clock=lambda: clock,
        retry=retry(races=races),
        token_keep=token_keep,
        limits=limits,
    )


def transaction_ids(store: Store) -> list[str]:
    """The ids of the transactions of the pool `P`, oldest first."""
    return [t.id for _, t in history(store).read_transactions()][::-1]
