"""The setting of publishing: where the Iceberg table of a pool is."""

from __future__ import annotations

from log_lake.settings.setting_types import SettingType
from log_lake.settings.settings import Setting


def _place(text: str) -> str:
    if text and text != "beside" and "/" not in text:
        raise ValueError("use beside, or a folder or bucket such as /tables/logs or s3://bucket/logs")
    return text


PLACE = SettingType(_place, "`beside`, or a folder or bucket, such as `s3://bucket/logs`")

SETTINGS = {
    "publish.iceberg": Setting(
        PLACE,
        "",
        "publish main as an Iceberg table after each compaction: beside its objects (beside), or at this URI",
    ),
}
