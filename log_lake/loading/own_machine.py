"""Recognizes addresses that only this machine can reach, and stops redirects of web servers to them.

A service at such an address (a metadata server with credentials, a database) trusts the machine.  A person who
names a file must not reach it with a worker's rights, nor must a web server by a redirect.

Called by `opening` and `places`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from lake_core.errors import InvalidInput

Resolve = Callable[[str], Iterable[str]]
"""A function that returns the IP addresses of a host name; none if there is no such host."""

_METADATA = frozenset(
    map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"))
)
"""Addresses at which clouds give out a machine's credentials, and which are not link-local."""

_IPV4_INSIDE = frozenset(
    ipaddress.IPv6Address(prefix).packed[:12] for prefix in ("::", "64:ff9b::", "64:ff9b:1::", "::ffff:0:0:0")
)
"""Prefixes of IPv6 addresses that contain an IPv4 address: an old form of such addresses, and those of
translators."""


def is_own_machine(host: str, resolve: Resolve) -> bool:
    """Whether a host is this machine or a link-local address, however it is written, or a name for such an
    address."""
    if not host:
        return True
    spelt = _address(host)
    return any(map(_is_own, [spelt] if spelt is not None else (_address(one) for one in resolve(host))))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Returns the address that a text spells, also in decimal, octal or hexadecimal numbers; None if it is a
    name."""
    text = text.partition("%")[0].rstrip(".")
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(text))
    except OSError:
        return None


def _is_own(address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inside is not None:
            return _is_own(inside)
        if address.packed[:12] in _IPV4_INSIDE:
            return _is_own(ipaddress.IPv4Address(address.packed[12:])) or address.is_loopback
    if address is None:
        return False
    return address.is_loopback or address.is_link_local or address.is_unspecified or address in _METADATA


def resolved(host: str) -> list[str]:
    """Returns the addresses of a host, as this machine resolves its name."""
    try:
        return [str(info[4][0]) for info in socket.getaddrinfo(host, None)]
    except (OSError, UnicodeError):
        return []


async def http_client(**options: Any) -> Any:
    """Returns an HTTP client of fsspec that follows no redirect from another host to this machine.

    For such a redirect its requests raise InvalidInput.  A host that is this machine may redirect anywhere.
    """
    import aiohttp

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_check_redirect)
    return aiohttp.ClientSession(trace_configs=[trace], **options)


async def _check_redirect(_: Any, context: SimpleNamespace, redirect: Any) -> None:
    headers = redirect.response.headers
    source = redirect.url
    target = source.join(type(source)(headers.get("Location") or headers.get("URI") or ""))
    names = str(source.raw_host or ""), str(target.raw_host or "")  # as they are asked for
    if await asyncio.to_thread(_leads_inside, *names):
        raise InvalidInput(
            f"{source.host} redirects to {target.host!r}, which is this machine, or one that only it reaches; it "
            "was not asked"
        )


def _leads_inside(source: str, target: str) -> bool:
    return is_own_machine(target, resolved) and not is_own_machine(source, resolved)
