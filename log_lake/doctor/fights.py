"""Settings of a pool that agents cannot use, and settings that undo each other; pure.

`lake set` refuses most of these.  A pool may have them nevertheless: another version of the program accepted them.
"""

from __future__ import annotations

from collections.abc import Iterator

from lake_core.errors import InvalidInput
from lake_core.records.pools import PoolConfig
from log_lake.settings import Settings
from log_lake.settings.settings import check_setting, check_together


def unusable(config: PoolConfig) -> list[str]:
    """Returns why settings of the pool are refused: first the faults of single settings, then those of settings
    together."""
    faults = []
    for name, text in config.settings.items():
        try:
            check_setting(name, text, kind=config.kind, key=config.key, aggregates=config.aggregates)
        except InvalidInput as error:
            faults.append(str(error))
    if not faults:
        try:
            check_together(config.settings, config.settings, kind=config.kind, key=config.key)
        except InvalidInput as error:
            faults.append(str(error))
    return faults


def fights(config: PoolConfig) -> Iterator[str]:
    """Yields a sentence for each setting that another one makes useless. Raises InvalidInput for an unusable
    setting."""
    settings = Settings(config.settings)
    if settings["compact.max_bytes"] < settings["compact.target_size"]:
        yield (
            f"compact.max_bytes ({settings.text('compact.max_bytes')}) is less than compact.target_size "
            f"({settings.text('compact.target_size')}): no compaction writes an object of the target size"
        )
    hidden, expires = settings["age_off"], settings["expire.age"]
    if hidden and expires is not None and hidden[0] == settings["expire.by"] and hidden[1] >= expires:
        yield (
            f"records expire ({settings.text('expire.age')}) before age_off ({settings.text('age_off')}) "
            "hides them: age_off does nothing"
        )
    for name in ("agents", "upkeep"):
        if settings["publish.iceberg"] and settings[name] == "paused":
            yield (
                f"publish.iceberg is set, and {name}=paused stops the agent that publishes: the table stays as it "
                "is"
            )
            return
