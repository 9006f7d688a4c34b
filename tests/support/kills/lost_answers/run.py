"""Runs a whole drill on the server that LAKE_S3 names."""

from __future__ import annotations

import contextlib
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from s3fs import S3FileSystem

from tests.support.kills.lost_answers.bucket import Bucket
from tests.support.kills.lost_answers.drill import Drill
from tests.support.kills.lost_answers.ending import finish, show
from tests.support.kills.lost_answers.trouble import Trouble, troubled
from tests.support.servers.proxy import Proxy
from tests.support.servers.s3 import REGION, options_of_environment

AT_MOST = 4
"""The most rounds for each kill that is asked for."""
SETTINGS = ("lease.ttl=2s", "lease.after=1s", "vacuum.grace=1s", "history.keep=1h", "compact.depth=3")


def environment(url: str) -> dict[str, str]:
    """Returns the environment in which a command reaches the server at this address."""
    options = options_of_environment()
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": options["key"],
        "AWS_SECRET_ACCESS_KEY": options["secret"],
        "AWS_DEFAULT_REGION": REGION,
    }


@contextlib.contextmanager
def _set(environ: dict[str, str]) -> Iterator[None]:
    """Sets these variables while the block runs, and makes clients of S3 anew, so that they use these variables
    alone."""
    before = {name: os.environ.get(name) for name in environ}
    os.environ.update(environ)
    S3FileSystem.clear_instance_cache()
    try:
        yield
    finally:
        S3FileSystem.clear_instance_cache()
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def drilled(uri: str, *, kills: int, seed: int, share: float) -> str:
    """Runs a drill. Returns what happened. Raises AssertionError if the lake differs from the model, or a command
    does not end."""
    server = options_of_environment()["client_kwargs"]["endpoint_url"]
    chance = random.Random(seed)
    with Proxy(server) as proxy, tempfile.TemporaryDirectory() as folder, _set(environment(server)):
        trouble = Trouble(random.Random(seed), share=share)
        drill = Drill(uri, Path(folder), chance, trouble, environment(proxy.url))
        drill.lake("init")
        for pool, model in drill.models.items():
            settings = (*SETTINGS, "load.inline=64KiB") if pool == "i" else SETTINGS
            drill.lake("create", pool, "--key", "k", "--kind", model.kind, "--set", *settings)
            drill.load(pool, "main", False)
        troubled(proxy, trouble)
        try:
            for number in range(AT_MOST * kills):
                if drill.report.kills >= kills:
                    break
                drill.round()
                proxy.requests.clear()
                print(f"round {number}, {drill.report.kills} killed", file=sys.stderr, flush=True)
            assert drill.report.kills >= kills, "too few were killed"
            finish(drill, Bucket(uri, environment(server)))
        except BaseException:
            print(show(drill), file=sys.stderr, flush=True)
            raise
        return show(drill)
