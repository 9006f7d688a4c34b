"""Lists objects from a name on, a page at a time, as S3 and Google Cloud Storage offer it.

fsspec's own listing always starts with the first name.  To list the last ten of ten thousand names takes it a
second; a listing from a name on takes a few milliseconds.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

PAGE = 1000
"""The most names in one answer, for both services."""

ListedPage = list[tuple[str, int, float, str]]
"""A page of objects, each as (key, size, modified, tag), ordered by key."""

Pages = Callable[[Any, str, str, str], Iterator[ListedPage]]
"""A function of (file system, bucket, prefix, after). It yields the keys greater than `after` in pages, each of
one request."""


def s3_pages(fs: Any, bucket: str, prefix: str, after: str) -> Iterator[ListedPage]:
    """Yields the keys of an S3 bucket, by `ListObjectsV2` with `StartAfter`."""
    more: dict[str, str] = {"StartAfter": after} if after else {}
    while True:  # bounded by the objects there are
        page = fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=PAGE, **more)
        yield [
            (item["Key"], int(item["Size"]), item["LastModified"].timestamp(), item.get("ETag", ""))
            for item in page.get("Contents", ())
        ]
        if not page.get("IsTruncated"):
            return
        more = {"ContinuationToken": page["NextContinuationToken"]}


def gcs_pages(fs: Any, bucket: str, prefix: str, after: str) -> Iterator[ListedPage]:
    """Yields the keys of a Google bucket, by `objects.list` with `startOffset`, which includes the name
    itself."""
    more: dict[str, str] = {"startOffset": after} if after else {}
    while True:  # bounded by the objects there are
        page = fs.call("GET", "b/{}/o", bucket, prefix=prefix, maxResults=PAGE, json_out=True, **more)
        yield [
            (
                item["name"],
                int(item["size"]),
                dt.datetime.fromisoformat(item["updated"]).timestamp(),
                str(item.get("generation", "")),
            )
            for item in page.get("items", ())
            if item["name"] != after
        ]
        if not page.get("nextPageToken"):
            return
        more = {**more, "pageToken": page["nextPageToken"]}


PAGES: dict[str, Pages] = {"s3": s3_pages, "gs": gcs_pages}
