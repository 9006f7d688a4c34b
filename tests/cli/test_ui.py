"""`lake ui`: the web view on this machine alone, as a person starts it; and what it refuses."""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pyarrow as pa
import pytest

from lake_core.errors import Denied
from log_lake.lake import Lake
from log_lake.view.listening import ADDRESS, open_to_read
from tests.support.command import Command
from tests.support.ui import Served, serving

POOL = "<script>document.title=`owned`;<img-src=x>&amp;"
"""A name that a pool may have: as HTML it would be a script."""


def filled(folder: Path) -> Lake:
    lake = Lake.create(str(folder), author="ada")
    pool = lake.create_pool("logs", key="k")
    pool.branch().append(pa.table({"k": list(range(100)), "user": ["ada", "bob"] * 50}), message="first")
    pool.branch().delete(where="user = 'bob'")
    lake.create_pool(POOL, key="k").branch().append(pa.table({"k": [POOL]}), message=POOL)
    return lake


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("ui") / "lake"
    filled(folder)
    with serving(folder) as served:
        yield served


def test_the_page_and_its_data_are_below_the_token(served: Served) -> None:
    status, body, headers = served.ask(served.path)
    assert (status, b"<title>Lake</title>" in body) == (200, True)
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    status, body, _ = served.ask(f"{served.path}data/about")
    about = json.loads(body)
    assert (about["server"], [one["label"] for one in about["lakes"]]) == ("", ["./lake"])
    key = about["lakes"][0]["key"]
    status, body, _ = served.ask(f"{served.path}data/pool?lake={key}&pool=logs")
    page = json.loads(body)
    assert (page["records"], page["is_exact"], page["stored"]) == (50, True, 100)
    status, body, _ = served.ask(f"{served.path}data/records?lake={key}&pool={quote(POOL)}")
    assert json.loads(body)["rows"] == [[POOL]]
    assert json.loads(served.ask(f"{served.path}data/agents")[1]) == []
    for route in ("pools", "log", "geometry", "jobs", "transactions"):
        assert served.ask(f"{served.path}data/{route}?lake={key}&pool=logs")[0] == 200, route


@pytest.mark.parametrize("path", ["/", "/data/about", "/x/data/about", "/static/main.js", "//data/about"])
def test_without_the_token_nothing_is_shown(served: Served, path: str) -> None:
    status, body, _ = served.ask(path)
    assert status == 404
    assert b"open the whole address" in body
    assert served.path.strip("/").encode() not in body


def test_a_part_of_the_token_is_not_enough(served: Served) -> None:
    assert served.ask(f"{served.path[:-2]}/data/about")[0] == 404
    assert served.ask(served.path.rstrip("/"))[0] == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "[::1]:{port}"]
)
def test_a_name_that_leads_here_by_another_host_is_refused(served: Served, host: str) -> None:
    """DNS rebinding: the browser takes the page of another site for one of this server, token or not."""
    status, body, _ = served.ask(f"{served.path}data/about", Host=host.format(port=served.port))
    assert (status, b"./lake" in body) == (403, False)


def test_localhost_is_this_machine_too(served: Served) -> None:
    assert served.ask(f"{served.path}data/about", Host=f"localhost:{served.port}")[0] == 200


@pytest.mark.parametrize(
    "headers", [{"Sec_Fetch_Site": "cross-site"}, {"Origin": "https://evil.example"}, {"Origin": "null"}]
)
def test_a_page_of_another_origin_is_refused(served: Served, headers: dict[str, str]) -> None:
    assert served.ask(f"{served.path}data/about", **headers)[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_no_request_writes(served: Served, method: str) -> None:
    for path in ("", "data/pools", "data/about"):
        assert served.ask(f"{served.path}{path}", method=method)[0] == 405


def test_only_the_loopback_address_is_listened_on(served: Served) -> None:
    own = {one[4][0] for one in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in own - {ADDRESS}:
        with pytest.raises(OSError), socket.create_connection((str(address), served.port), timeout=5):
            pass
    with pytest.raises(OSError), socket.create_connection(("::1", served.port), timeout=5):
        pass


def test_no_answer_leads_to_an_address_without_the_token(served: Served) -> None:
    status, _, headers = served.ask(f"{served.path}data/pools/?lake=x")
    assert (status, "location" in headers) == (404, False)


BROWSER = """#!/bin/sh
printf '%s' "$1" > {told}.new && mv {told}.new {told}
while kill -0 $PPID; do sleep 0.2; done
"""
"""A browser in the terminal: it notes what it is asked to open, and does not end before `lake ui`."""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_browser_that_stays_holds_nothing_up_and_gets_no_token(
    tmp_path: Path, ending: signal.Signals
) -> None:
    filled(tmp_path / "lake")
    told, browser = tmp_path / "told", tmp_path / "browser"
    browser.write_text(BROWSER.format(told=told))
    browser.chmod(0o700)
    with serving(tmp_path / "lake", "--open", BROWSER=f"{browser} %s", TMPDIR=str(tmp_path)) as served:
        assert served.ask(served.path)[0] == 200
        deadline = time.monotonic() + 600
        while not told.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        opened = told.read_text()
        assert opened.startswith("file:///")
        page = Path(urlsplit(opened).path)
        assert served.address not in opened
        assert served.address in page.read_text()
        assert (page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        served.process.send_signal(ending)
        assert served.process.wait(timeout=600) == 0
        assert not page.parent.exists()


def test_a_file_or_a_link_may_open_the_page_and_nothing_else(served: Served) -> None:
    """What a browser sends when a file leads to the page."""
    opens = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert served.ask(served.path, **opens)[0] == 200
    for other in ({"Sec_Fetch_Dest": "iframe"}, {"Sec_Fetch_Mode": "cors"}, {"Origin": "null"}):
        assert served.ask(served.path, **(opens | other))[0] == 403
    assert served.ask(served.path, method="POST", **opens)[0] == 403
    assert served.ask(f"{served.path}data/about", **opens)[0] == 403
    assert served.ask("/", **opens)[0] == 403


def test_another_lake_is_not_opened(served: Served) -> None:
    status, body, _ = served.ask(f"{served.path}data/pools?lake=/etc")
    assert (status, b"is not shown here" in body) == (404, True)


def test_the_lake_is_opened_so_that_it_cannot_be_changed(tmp_path: Path) -> None:
    filled(tmp_path / "lake")
    lake = open_to_read(str(tmp_path / "lake"))
    with pytest.raises(Denied):
        lake.pool("logs").branch().append(pa.table({"k": [1]}))


def test_an_interrupt_ends_it_with_status_0(tmp_path: Path) -> None:
    filled(tmp_path / "lake")
    with serving(tmp_path / "lake") as served:
        assert served.ask(served.path)[0] == 200
        served.process.send_signal(signal.SIGINT)
        _, complaints = served.process.communicate(timeout=600)
    assert (served.process.returncode, complaints) == (0, "")


def test_a_lake_that_is_not_there_and_a_port_in_use_are_one_line(lake: Command) -> None:
    with socket.create_server((ADDRESS, 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "name another --port" in lake.fails(9, "ui", "--port", port)
    assert "is no port" in lake.fails(2, "ui", "--port", "70000")
    outcome = Command(str(lake.folder / "nowhere"), lake.folder).run("ui")
    assert outcome.err == f"lake: {lake.folder}/nowhere: there is no lake; make one with: lake init\n"


@pytest.mark.parametrize("package", ["fastapi", "uvicorn"])
def test_a_missing_package_is_one_line(lake: Command, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    said = lake.fails(9, "ui")
    assert said.startswith(f"lake: lake ui needs the package {package} (")
    assert said.endswith("run: pip install 'log-lake[ui]'")
