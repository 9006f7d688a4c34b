"""The settings of a pool that its writers and readers follow: for their leases, and for how long tokens are
known."""

from __future__ import annotations

from log_lake.settings.setting_types import DURATION
from log_lake.settings.settings import Setting

SETTINGS = {
    "lease.ttl": Setting(DURATION, "10m", "a lease dies this long after its holder renewed it last"),
    "lease.after": Setting(DURATION, "1m", "a writer takes a lease once its work has lasted this long"),
    "token.keep": Setting(DURATION, "30d", "remember a token at least this long"),
}
