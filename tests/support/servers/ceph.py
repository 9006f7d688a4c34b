"""Runs Ceph's object gateway (radosgw) on loopback: a real S3 server.

It has one monitor, one storage daemon that keeps everything in memory, one gateway, and no manager.
Authentication is on, because without it the gateway hangs. It takes about 450 MB and ten seconds. The order of
the steps matters. By default a monitor ends itself if less than a twentieth of the disk is free, although it
needs only a few megabytes; here the limit is a hundredth.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.servers.daemons import START_SECONDS, accepts, daemon, free_port, programs, run

PACKAGES = ("radosgw", "ceph-mon", "ceph-osd", "ceph-common")
_PROGRAMS = (
    "ceph",
    "ceph-authtool",
    "ceph-mon",
    "ceph-osd",
    "monmaptool",
    "radosgw",
    "radosgw-admin",
)

_CONF = """\
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon_port}]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {folder}/keyring
run dir = {folder}
admin socket = {folder}/$name.asok
log file = {folder}/$name.log
crash dir = {folder}/crash
mon data = {folder}/mon
osd data = {folder}/osd
mon allow pool size one = true
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 4294967296
osd scrub during recovery = false
osd max scrubs = 0
mon data avail crit = 1
mon data avail warn = 2

[client.admin]
rgw frontends = beast endpoint=127.0.0.1:{rgw_port} tcp_nodelay=1
rgw data = {folder}/rgw
rgw enable gc threads = false
rgw enable lc threads = false
rgw enable quota threads = false
rgw run sync thread = false
"""


@contextlib.contextmanager
def radosgw() -> Iterator[dict[str, Any]]:
    """Runs the gateway while the block runs. Yields endpoint_url, and key and secret of a user."""
    path = programs(_PROGRAMS, packages=PACKAGES)
    folder = Path(tempfile.mkdtemp(prefix="ceph-"))  # short: the path of a socket has at most 107 letters
    try:
        with contextlib.ExitStack() as daemons:
            yield _start(path, folder, daemons)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start(path: dict[str, str], folder: Path, daemons: contextlib.ExitStack) -> dict[str, Any]:
    conf, keyring, monmap = folder / "ceph.conf", folder / "keyring", folder / "monmap"
    fsid, mon_port, rgw_port = str(uuid.uuid4()), free_port(), free_port()
    conf.write_text(_CONF.format(fsid=fsid, folder=folder, mon_port=mon_port, rgw_port=rgw_port))
    for name in ("mon", "osd", "rgw", "crash"):
        (folder / name).mkdir()
    shared = ("-c", conf)

    def ceph(*words: str) -> str:
        return run(path["ceph"], *shared, "--connect-timeout", "20", *words)

    authtool = path["ceph-authtool"]
    run(authtool, "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
    caps = [word for part in ("mon", "osd", "mds", "mgr") for word in ("--cap", part, "allow *")]
    run(authtool, keyring, "--gen-key", "-n", "client.admin", *caps)
    address = f"[v2:127.0.0.1:{mon_port}]"
    run(path["monmaptool"], "--create", "--fsid", fsid, "--addv", "a", address, monmap)
    run(path["ceph-mon"], *shared, "--mkfs", "-i", "a", "--monmap", monmap, "--keyring", keyring)
    daemons.enter_context(
        daemon(
            path["ceph-mon"],
            "-f",
            "-i",
            "a",
            *shared,
            log=folder / "mon.out",
            ready=lambda: accepts(mon_port),
        )
    )

    osd_id = str(uuid.uuid4())
    ceph("osd", "new", osd_id)
    osd_keyring = folder / "osd" / "keyring"
    run(authtool, "--create-keyring", osd_keyring, "--gen-key", "-n", "osd.0")
    ceph("auth", "add", "osd.0", "mon", "allow profile osd", "osd", "allow *", "-i", str(osd_keyring))
    osd = (path["ceph-osd"], "-i", "0", *shared, "--keyring", osd_keyring)
    run(*osd, "--mkfs", "--osd-uuid", osd_id)

    def osd_is_up() -> bool:
        return bool(json.loads(ceph("osd", "stat", "--format", "json"))["num_up_osds"])

    daemons.enter_context(daemon(*osd, "-f", log=folder / "osd.out", ready=osd_is_up))

    began = time.monotonic()
    said = run(
        path["radosgw-admin"],
        *shared,
        *("user", "create", "--uid", "lake", "--display-name", "lake"),
        within=START_SECONDS,
    )
    keys = json.loads(said[said.index("{") :])["keys"][0]
    left = START_SECONDS - (time.monotonic() - began)
    daemons.enter_context(
        daemon(
            *(path["radosgw"], "-f", "-n", "client.admin", *shared),
            log=folder / "rgw.out",
            ready=lambda: accepts(rgw_port),
            within=max(left, 10.0),
        )
    )
    return {
        "key": keys["access_key"],
        "secret": keys["secret_key"],
        "endpoint_url": f"http://127.0.0.1:{rgw_port}",
    }
