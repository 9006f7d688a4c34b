"""Runs a command with a place for a lake on Ceph: `python -m tests.support.servers.on_ceph COMMAND... {uri} ...`.

`{uri}` is replaced by an empty place in a bucket of a gateway that runs as long as the command; LAKE_S3 tells
the command how to reach it. It is for runs of minutes that a person starts:

    python -m tests.support.servers.on_ceph python -m tests.support.kills.killed_writers {uri} 600
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator

from tests.support.servers.ceph import radosgw
from tests.support.servers.s3 import BUCKET, make_bucket, s3_client


@contextlib.contextmanager
def lake_on_ceph() -> Iterator[str]:
    """Yields the URI of an empty place, with LAKE_S3 set in this process and its children."""
    with radosgw() as gateway:
        options = s3_client(gateway["endpoint_url"], gateway["key"], gateway["secret"])
        make_bucket(options)
        os.environ["LAKE_S3"] = json.dumps(options)
        yield f"s3://{BUCKET}/lake"


def main() -> int:
    with lake_on_ceph() as uri:
        command = [word.replace("{uri}", uri) for word in sys.argv[1:]]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
