"""The setting of rewritings: what is checked before a rewriting is committed."""

from __future__ import annotations

from log_lake.settings.setting_types import one_of
from log_lake.settings.settings import Setting

COUNTS, CONTENT = "counts", "content"

SETTINGS = {
    "verify.rewrites": Setting(
        one_of(COUNTS, CONTENT),
        COUNTS,
        "what a rewriting compares before it commits: numbers of records, or the content of inputs and new objects",
    ),
}
