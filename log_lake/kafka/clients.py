"""Finds the settings with which the Kafka client logs in to brokers.

They come from a connection of Airflow (`Lake.clients`), otherwise from a file on the worker, which
`LAKE_KAFKA_CLIENTS` names:

    [broker1.example.com:9093,broker2.example.com:9093]
    security.protocol = SASL_SSL
    sasl.mechanism = SCRAM-SHA-512
    sasl.username = lake
    sasl.password = ...

A section names brokers as `ingest.source` does, and its settings are librdkafka's. A section is used only if it
names every broker of the source, because other people may write the setting of the pool: so no password is sent
to another host. No value of the file is repeated in an error.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping

from lake_core.errors import InvalidInput
from lake_core.phrases import listed

VARIABLE = "LAKE_KAFKA_CLIENTS"

ALLOWED = ("security.protocol", "sasl.", "ssl.", "socket.", "client.rack", "broker.address.family")
"""Prefixes of the settings that a section may have.  Others decide what is read, or load programs."""

REFUSED = ("ssl.engine.location", "ssl.providers", "sasl.kerberos.kinit.cmd")
"""Settings that run a program or load a library."""


def client_settings(
    hosts: tuple[str, ...], environ: Mapping[str, str], clients: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """Returns the Kafka client's settings for these brokers; none if no section names all of them.  Raises
    InvalidInput.

    Settings in `clients` that a section may not have are left out, because a connection of Airflow serves other
    programs too.
    """
    for section, settings in clients.items():
        if _names_all(section, hosts):
            return {name: text for name, text in settings.items() if _is_allowed(name)}
    path = environ.get(VARIABLE, "")
    if not path:
        return {}
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), default_section="")
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{VARIABLE}={path}: cannot be read ({type(error).__name__}); mend the file"
        ) from None
    except configparser.Error as error:
        line = getattr(error, "lineno", None) or next(
            (number for number, _ in getattr(error, "errors", ())), None
        )
        where = f", line {line}" if line else ""
        raise InvalidInput(
            f"{VARIABLE}={path}{where}: not a file of [HOST:PORT,...] and NAME = VALUE"
        ) from None
    for section in parser.sections():
        if _names_all(section, hosts):
            return _checked(dict(parser[section]), f"{VARIABLE}={path}, [{section}]")
    return {}


def _names_all(section: str, hosts: tuple[str, ...]) -> bool:
    return set(hosts) <= {host.strip() for host in section.split(",")}


def _is_allowed(name: str) -> bool:
    return name.startswith(ALLOWED) and name not in REFUSED


def _checked(settings: dict[str, str], what: str) -> dict[str, str]:
    bad = [name for name in settings if not _is_allowed(name)]
    if bad:
        raise InvalidInput(
            f"{what}: {listed(bad)} may not be set here; a section may have security.protocol, sasl.*, ssl.*, "
            "socket.*, client.rack and broker.address.family"
        )
    return settings
