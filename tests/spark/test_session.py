"""Where there is no Spark, a session says so within seconds; where it goes away, within the time that is set."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lake_core.errors import InvalidInput, Unavailable
from spark_apps import reach
from spark_apps.in_task import InTask
from spark_apps.reach import check_server
from spark_apps.session import (
    MASTER,
    REMOTE,
    _why_gone,
    check_java,
    one_session,
    session_when_needed,
    spark_session,
)


def closed_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def test_no_connect_server_at_the_address_is_said_with_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    port = closed_port()
    monkeypatch.setenv(REMOTE, f"sc://127.0.0.1:{port}/;token=secret;session_id=x")
    said = (
        rf"^no Spark at sc://127\.0\.0\.1:{port} \(LAKE_SPARK_REMOTE\): Connection refused; start Spark there"
    )
    with pytest.raises(Unavailable, match=said) as caught, spark_session("none"):
        pass
    assert "secret" not in str(caught.value)
    with (
        pytest.raises(Unavailable, match=r"\(--remote\): "),
        spark_session("none", remote="sc://no-such-host.invalid:15002"),
    ):
        pass


def test_what_listens_and_does_not_speak_spark_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        remote = f"sc://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unavailable, match="does not speak Spark Connect, or is too busy"):
            check_server(remote, setting="--remote", seconds=1.0)
        assert time.monotonic() - begun < 300, "far from the ten minutes of Spark's client"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "sc://", "sc://127.0.0.1:99999", "sc://127.0.0.1/path"]
)
def test_an_address_that_is_none_is_said(url: str) -> None:
    with pytest.raises(InvalidInput, match="use sc://HOST:PORT"), spark_session("none", remote=url):
        pass


def test_no_master_at_the_address_is_said() -> None:
    """In a process of its own: where a session runs already, it is taken."""
    master = f"spark://127.0.0.1:{closed_port()},127.0.0.1:{closed_port()}"
    code = "from spark_apps.session import spark_session\nwith spark_session('none'): pass"
    left_out = (REMOTE, "PYSPARK_GATEWAY_PORT")
    environment = {k: v for k, v in os.environ.items() if k not in left_out} | {MASTER: master}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode != 0
    assert re.search(
        r"Unavailable: no Spark at spark://.* \(LAKE_SPARK_MASTER\): Connection refused", done.stderr
    )


def test_of_several_masters_one_that_answers_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as master:
        port = master.getsockname()[1]
        reach.check_master(f"spark://127.0.0.1:{closed_port()},127.0.0.1:{port}", setting=MASTER)
    reach.check_master("local[2]", setting=MASTER)


def test_one_session_serves_many_calls_and_ends_with_the_block() -> None:
    events = []

    @contextmanager
    def opener(title: str, /, *, size: int | None = None) -> Iterator[Any]:
        if size == 0:
            yield InTask()
            return
        events.append(f"open {title}")
        yield "session"
        events.append("close")

    with one_session(opener) as shared:
        with shared("small", size=0) as session:
            assert isinstance(session, InTask)
        for title in ("a", "b"):
            with shared(title, size=1) as session:
                events.append(session)
    assert events == ["open a", "session", "session", "close"]
    with one_session(opener):
        pass
    assert len(events) == 4, "without a call no session is opened"
    with session_when_needed("c", open_spark=opener) as needed:
        assert (needed(), needed()) == ("session", "session")
    assert events[4:] == ["open c", "close"]


def test_a_session_that_runs_already_has_its_own_settings_again_after_the_block(spark: Any) -> None:
    shuffled, zone = "spark.sql.shuffle.partitions", "spark.sql.session.timeZone"
    unset = "spark.sql.autoBroadcastJoinThreshold"
    zone_before, unset_before = spark.conf.get(zone), spark.conf.get(unset, None)
    spark.conf.set(shuffled, "3")
    try:
        for error in (None, ValueError("of the work"), KeyboardInterrupt()):
            try:
                with spark_session("mine", conf={shuffled: "5", zone: "UTC", unset: "7"}) as session:
                    assert [session.conf.get(key) for key in (shuffled, zone, unset)] == ["5", "UTC", "7"]
                    if error:
                        raise error
            except (ValueError, KeyboardInterrupt):
                pass
            assert (spark.conf.get(shuffled), spark.conf.get(zone)) == ("3", zone_before)
            assert spark.conf.get(unset, None) == unset_before
        with (
            pytest.raises(InvalidInput, match=r"spark\.executor\.memory='8g': the Spark session that runs"),
            spark_session("mine", conf={shuffled: "5", "spark.executor.memory": "8g"}),
        ):
            pass
        assert spark.conf.get(shuffled) == "3", "nothing is set if one cannot be"
    finally:
        spark.conf.unset(shuffled)


def test_a_server_that_was_started_again_and_forgot_the_session_is_said_to_have_gone() -> None:
    """Spark's client raises this if the server is back before the client gives up."""
    from pyspark.errors import PySparkRuntimeError

    forgot = {"error_type": "INVALID_HANDLE.SESSION_NOT_FOUND"}
    raised = PySparkRuntimeError(errorClass="RESPONSE_ALREADY_RECEIVED", messageParameters=forgot)
    assert "started again" in (_why_gone(raised) or "")
    assert _why_gone(PySparkRuntimeError("something else")) is None


def test_without_java_a_task_is_told_so_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InvalidInput, match=r"no Java on this machine: JAVA_HOME=.* has no bin/java"):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidInput, match="neither JAVA_HOME nor PATH leads to one"):
        check_java()
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    check_java()
