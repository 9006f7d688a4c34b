"""Ports: the usual one, or the next that is free, or one clear line."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from local.errors import LocalError
from local.ports import LOOPBACK, REACH, choose, is_answered, is_free


@pytest.fixture(params=[(socket.AF_INET, LOOPBACK), (socket.AF_INET6, "::1")], ids=["IPv4", "IPv6"])
def taken(request: pytest.FixtureRequest) -> Iterator[int]:
    """A port of a loopback address that somebody listens on."""
    family, address = request.param
    with socket.socket(family, socket.SOCK_STREAM) as server:
        try:
            server.bind((address, 0))
        except OSError:
            pytest.skip(f"this machine has no {address}")
        server.listen()
        yield server.getsockname()[1]


def test_a_port_that_somebody_listens_on_is_not_free_and_the_next_free_one_is_chosen(taken: int) -> None:
    assert not is_free(taken)
    chosen = choose(taken, what="it")
    assert taken < chosen < taken + REACH
    assert is_free(chosen)


def test_a_port_that_nobody_listens_on_is_free_and_not_answered(taken: int) -> None:
    with socket.socket() as server:
        server.bind((LOOPBACK, 0))
        port = server.getsockname()[1]
    assert is_free(port)
    assert not is_answered(port)


def test_a_port_that_was_given_away_already_is_not_chosen() -> None:
    assert choose(5000, what="it", taken=[5000, 5001], free=lambda _: True) == 5002


def test_where_all_are_taken_one_line_says_what_and_where() -> None:
    with pytest.raises(
        LocalError, match=r"spark: no free port from 15002 to 15051 on 127\.0\.0\.1; stop what listens"
    ):
        choose(15002, what="spark", free=lambda _: False)


def test_ports_end_at_the_last_there_is() -> None:
    asked: list[int] = []
    with pytest.raises(LocalError):
        choose(65530, what="it", free=lambda port: bool(asked.append(port)))
    assert asked == list(range(65530, 65536))
