"""Reads a bucket on its server without the lake and without fsspec."""

from __future__ import annotations

from collections.abc import Iterator

import boto3

from tests.support.servers.s3 import REGION


class Bucket:
    """The content of a bucket, read without the lake."""

    def __init__(self, uri: str, environ: dict[str, str]) -> None:
        self._name, _, self._prefix = uri.removeprefix("s3://").partition("/")
        self._client = boto3.client(
            "s3",
            endpoint_url=environ["AWS_ENDPOINT_URL"],
            aws_access_key_id=environ["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=environ["AWS_SECRET_ACCESS_KEY"],
            region_name=REGION,
        )

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """Yields the names and bytes of all objects."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=self._prefix)
        for page in pages:
            for each in page.get("Contents", []):
                yield each["Key"], self._client.get_object(Bucket=self._name, Key=each["Key"])["Body"].read()

    def uploads(self) -> list[str]:
        """Returns the uploads below the prefix that were begun but not ended."""
        said = self._client.list_multipart_uploads(Bucket=self._name, Prefix=self._prefix)
        return [each["Key"] for each in said.get("Uploads", [])]
