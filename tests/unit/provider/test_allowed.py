"""Which addresses a run may name."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path

import pytest

from airflow_lake import allowed
from airflow_lake.allowed import LAKES
from lake_core.errors import InvalidInput
from log_lake.loading.opening import remote
from log_lake.loading.own_machine import resolved
from log_lake.loading.places import FILES, Places, below, files_of, named, sources


def hosts(name: str) -> list[str]:
    return {
        "metadata.internal": ["169.254.169.254"],
        "six.internal": ["::1"],
        "fair.org": ["93.184.216.34"],
    }.get(name, [])


def refused(address: str, places: Places, *, setting: str = FILES) -> str:
    try:
        allowed.check(address, what="files", task="t", places=places, setting=setting, resolve=hosts)
    except InvalidInput as error:
        return str(error)
    return ""


SOURCES = {"ingest.source": "s3a://in/flights/", "intervals.source": "/data/in/%Y-%m-%d/*.csv"}


@pytest.mark.parametrize(
    "address",
    [
        "s3://in/flights", "s3://in/flights/late.csv", "s3a://in/flights/*.csv", "/data/in/late.csv",
        "/data/in/2026-01-01/", "file:///data/in/x", "/data//in/./x",
    ],
)  # fmt: skip
def test_files_below_the_sources_of_the_pool_are_allowed(address: str) -> None:
    assert refused(address, sources(SOURCES)) == ""


@pytest.mark.parametrize(
    "address",
    [
        "/etc/passwd", "file:///etc/passwd", "s3://in/flight", "s3://in/flightsecrets/x", "s3://other/flights/x",
        "gs://in/flights/x", "/data/inner/x", "/data/in/../../etc/passwd", "/data/in/%2e%2e/%2e%2e/etc/passwd",
        "s3://in/flights/../secret", "s3://in/flights/%252e%252e/secret", "/data/in/..", "/", "", "-", "x.csv",
        "simplecache::s3://in/flights/x", "filecache::/data/in/x", "zip://*::s3://in/flights/a.zip",
        "reference::/data/in/x", "/data/in/x::http://127.0.0.1/", "s3://in/flights/a\\..\\b", "s3://in/flights/\n",
        "S3://in/flights/x", "file://localhost/data/in/x", "memory://in", "file://data/in/x",
    ],
)  # fmt: skip
def test_all_other_files_are_refused_in_one_line(address: str) -> None:
    said = refused(address, sources(SOURCES))
    assert said.startswith("t: files=")
    assert said.endswith("nothing was done")
    assert "\n" not in said


@pytest.mark.parametrize(
    "pattern", ["", "/*.csv", "/%Y/x.csv", "s3://*/x", "{{ params.x }}", "s3://{{ b }}/x", "%Y"]
)
def test_a_pattern_without_a_fixed_folder_allows_nothing(pattern: str) -> None:
    assert all(refused(one, below([pattern])) for one in ("/etc/passwd", "s3://in/x", "x", "s3://x"))


OWN = [
    "127.0.0.1", "127.9.9.9", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "0", "0.0.0.0", "[::1]",
    "[::]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::7f00:1]",
    "[::ffff:0:7f00:1]", "168.63.129.16", "192.0.0.192", "[fe80::1]", "169.254.169.254",
    "2852039166", "169.254.169.254.", "0xa9fea9fe", "[fd00:ec2::254]", "metadata.internal", "six.internal",
    "user:word@127.0.0.1", "127.0.0.1:8080", "METADATA.internal",
]  # fmt: skip


@pytest.mark.parametrize("host", OWN)
@pytest.mark.parametrize("scheme", ["http", "https", "ftp", "sftp", "hdfs", "webhdfs"])
def test_the_workers_own_machine_is_refused_in_each_spelling_whatever_is_allowed(
    scheme: str, host: str
) -> None:
    everything = named(f"* {scheme}://{host}/ {scheme}://{host}/x")
    assert "own machine" in refused(f"{scheme}://{host}/x", everything)
    assert refused("https://fair.org/x", everything) == ""
    assert refused("https://93.184.216.34/x", everything) == ""


@pytest.mark.parametrize(
    "host", ["\U0001d4c1ocalhost", "\U0001fbf1\U0001fbf2\U0001fbf7.0.0.1", "stra\u00dfe.org"]
)
def test_a_host_beyond_ascii_is_refused_since_clients_read_it_in_their_own_way(host: str) -> None:
    """The client of HTTP reads the first two as localhost and 127.0.0.1, and Python's resolver knows neither."""
    assert "beyond ASCII" in refused(f"http://{host}/x", named("*"))
    assert refused("http://xn--strae-oqa.org/x", named("*")) == ""


def test_the_environment_widens_what_is_allowed() -> None:
    places = files_of({FILES: "s3://late/ /drop/*.csv /one.csv"})
    assert [refused(one, places) for one in ("s3://late/a", "/one.csv")] == ["", ""]
    assert all(refused(one, places) for one in ("s3://later/a", "/one.csv/x", "/drop/x.csv"))
    assert refused("/any/where", files_of({FILES: "*"})) == ""
    assert "The variable LAKE_ALLOWED_FILES of the workers allows more" in refused("/x", Places())


@pytest.mark.parametrize(
    ("name", "is_allowed"),
    [
        ("lake_default", True), ("any_connection", True), ("", True), ("s3://named/lake", True),
        ("s3://named/lake/", True), ("s3://shown/lake", True), ("/own/lake", True), ("s3://team/a", True),
        ("s3://named/lake/other", False), ("s3://named", False), ("/tmp/evil", False), ("memory://evil", False),
        ("/own/lake/../evil", False), ("file:/evil", False), ("simplecache::s3://named/lake", False),
    ],
)  # fmt: skip
def test_a_lake_is_a_connection_or_named_by_the_dag_or_the_environment(name: str, is_allowed: bool) -> None:
    environ = {
        "LAKE": "s3://named/lake",
        "LAKE_VIEW_LAKES": "lake_own s3://shown/lake/",
        LAKES: "s3://team/*",
    }
    places = allowed.of_templates("/own/lake")
    if is_allowed:
        allowed.check_lake(name, task="t", places=places, environ=environ)
    else:
        with pytest.raises(InvalidInput, match="nothing was done"):
            allowed.check_lake(name, task="t", places=places, environ=environ)


@pytest.mark.parametrize(
    ("value", "with_conf", "without"),
    [
        ("{{ params.x }}", True, False), ("/in/{{ params['x'] }}", True, False),
        ("{{ dag_run.conf.x }}", True, True),
        ("{{ conf.x }}", True, False), ("{{ run_id }}", True, True), ("{{ ti.get_dagrun().conf.x }}", True, True),
        ("{{ triggering_asset_events.values() | first }}", True, True), ("{{ inlet_events[a] }}", True, True),
        (["a", "{% if params.x %}b{% endif %}"], True, False),
        ("{{ ti.xcom_pull('form')['params_input'] }}", True, True), ("{{ ds }}", False, False),
        ("params", False, False),
        ("{{ configured }}", False, False), (None, False, False), (5, False, False),
    ],
)  # fmt: skip
def test_a_template_that_reads_what_a_run_gives_is_known(
    value: object, with_conf: bool, without: bool
) -> None:
    assert (allowed.is_given(value, conf={"x": 1}), allowed.is_given(value, conf={})) == (with_conf, without)


def test_what_the_dag_says_itself_is_allowed() -> None:
    places = allowed.of_templates(["s3://in/{{ params.day }}/*.csv", "/fixed.csv"])
    assert [refused(one, places) for one in ("s3://in/2026/*.csv", "/fixed.csv")] == ["", ""]
    assert all(refused(one, places) for one in ("s3://inner/x", "s3://in/../x", "/fixed.csv/x"))
    places = allowed.defaults({"file": "/a.csv", "files": ["/b.csv"], "n": 5}, None)
    assert [refused(one, places) for one in ("/a.csv", "/b.csv")] == ["", ""]
    assert refused("/c.csv", places)


def test_a_link_below_an_allowed_folder_does_not_widen_it(tmp_path: Path) -> None:
    """Who may write in the folder of a pool's sources may not have other files loaded by the form of a run."""
    (tmp_path / "disk/in/day").mkdir(parents=True)
    (tmp_path / "data").symlink_to(tmp_path / "disk")
    (tmp_path / "disk/in/file.csv").symlink_to("/etc/passwd")
    (tmp_path / "disk/in/folder").symlink_to("/etc")
    (tmp_path / "disk/in/current").symlink_to("day")
    places = sources({"ingest.source": f"{tmp_path}/data/in/*.csv", "intervals.source": ""})
    inside = ("day/a.csv", "*.csv", "current/a.csv", "new/*/x")
    assert [refused(f"{tmp_path}/data/in/{one}", places) for one in inside] == [""] * 4
    for one in ("file.csv", "folder", "folder/passwd", "folder/*"):
        assert "a link leads from there to '/etc" in refused(f"{tmp_path}/data/in/{one}", places)
        assert "a link leads from there" in refused(f"file://{tmp_path}/data/in/{one}", places)
    assert refused(f"{tmp_path}/data/in/file.csv", named("*")) == ""


def test_the_address_of_a_host_is_looked_up_when_a_run_is_checked_and_again_when_the_file_is_opened() -> None:
    """docs/trust.md warns of it: the address may change in between, here to that of this machine."""

    class Answers(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1")
            self.end_headers()
            self.wfile.write(b"x")

        def log_message(self, format: str, *args: object) -> None:
            """The test's output is its own."""

    looked_up: list[str] = []

    def elsewhere(host: str) -> list[str]:
        looked_up.append(host)
        return ["93.184.216.34"]

    with http.server.HTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        file = f"http://localhost:{server.server_port}/x.csv"
        what = {"what": "files", "task": "t", "places": Places(below=("",)), "setting": FILES}
        allowed.check(file, **what, resolve=elsewhere)
        assert looked_up == ["localhost"]
        fs, path = remote(file)
        assert fs.cat_file(path) == b"x", "what the check found is not what is opened"
        server.shutdown()
    with pytest.raises(InvalidInput, match="own machine"):
        allowed.check(file, **what, resolve=resolved)
