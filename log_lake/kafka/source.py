"""The address of topics, `kafka://HOST:PORT[,HOST:PORT...]/TOPIC[,TOPIC...]`, as a value; pure.

The address holds no user, no password and no options: credentials are the worker's (`clients`), and options are
settings of the pool (`settings`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SCHEME = "kafka://"
FORM = "kafka://HOST:PORT[,HOST:PORT...]/TOPIC[,TOPIC...]"

MOST_TOPICS = 100
"""The most topics of one pool: each look asks for the offsets of all their partitions."""

_HOST = re.compile(r"(?:[A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):(?P<port>[0-9]{1,5})")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True)
class KafkaSource:
    """The brokers to ask first, each as HOST:PORT, and the topics to read."""

    hosts: tuple[str, ...]
    topics: tuple[str, ...]


def is_kafka(text: str) -> bool:
    """Whether an `ingest.source` names topics, and no files."""
    return text.lower().startswith(SCHEME)


def kafka_source(text: str) -> KafkaSource:
    """Returns the source.  Raises ValueError, which repeats nothing that may be a secret."""
    hosts, _, topics = text[len(SCHEME) :].partition("/")
    if "@" in hosts:
        raise ValueError(
            f"use {FORM}, without a user or password: write these into the file that LAKE_KAFKA_CLIENTS names "
            "(docs/kafka.md)"
        )
    if "?" in topics:
        raise ValueError(f"use {FORM}, without options: they are the settings kafka.*")
    for host in hosts.split(","):
        match = _HOST.fullmatch(host)
        if match is None or not 0 < int(match["port"]) < 65_536:
            raise ValueError(f"use {FORM}: {host!r} is not HOST:PORT")
    names = tuple(topics.rstrip("/").split(","))
    for name in names:
        if not _TOPIC.fullmatch(name) or name in (".", ".."):
            raise ValueError(f"use {FORM}: {name!r} is no topic; name each, since patterns are not read")
    if len(set(names)) < len(names):
        raise ValueError(f"use {FORM}: a topic is named twice")
    if len(names) > MOST_TOPICS:
        raise ValueError(f"use at most {MOST_TOPICS} topics, and other pools for more")
    return KafkaSource(tuple(dict.fromkeys(hosts.split(","))), names)
