"""The settings of publishing: where the Iceberg table of a pool is, and how its fields are converted."""

from __future__ import annotations

from log_lake.settings.setting_types import SettingType, one_of
from log_lake.settings.settings import Setting


def _place(text: str) -> str:
    if text and text != "beside" and "/" not in text:
        raise ValueError("use beside, or a folder or bucket such as /tables/logs or s3://bucket/logs")
    return text


PLACE = SettingType(_place, "`beside`, or a folder or bucket, such as `s3://bucket/logs`")

STRICT, TEXT = "strict", "text"

SETTINGS = {
    "publish.iceberg": Setting(
        PLACE,
        "",
        "publish main as an Iceberg table after each compaction: beside its objects (beside), or at this URI",
    ),
    "publish.types": Setting(
        one_of(STRICT, TEXT),
        STRICT,
        "what to do with fields that Iceberg has no type for: refuse to publish (strict), or convert them, mostly "
        "to text, in copies of their objects (text)",
    ),
}
