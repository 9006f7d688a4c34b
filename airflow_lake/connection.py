"""The content of a connection: where a lake is, its credentials, and the Spark that works on it; pure.

A connection of type `lake` names the lake by its host (or by `uri` in its extra), and may name three others:
one of type aws or google_cloud_platform for credentials, one of type spark_connect or spark for Spark, one of
type kafka for topics.  The hook reads connections from Airflow and passes them here (`hooks.lake`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote

from lake_core.errors import InvalidInput
from lake_core.phrases import nearest


class Connection(Protocol):
    """The fields of an Airflow connection that this module reads."""

    conn_id: str
    conn_type: str | None
    host: str | None
    schema: str | None
    login: str | None
    password: str | None
    port: int | None
    extra: str | None


@dataclass(frozen=True)
class LakeAddress:
    """Where a lake is.  `options` go to the store; `credentials`, `spark` and `kafka` are ids of further
    connections, or empty."""

    uri: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    credentials: str = ""
    spark: str = ""
    in_task: int = 0
    """Bytes of work up to which a task needs no Spark."""
    kafka: str = ""


@dataclass(frozen=True)
class SparkAddress:
    """Where a Spark is.  Either `remote` (sc://HOST:PORT) or `master` is set; it may hold a token, so it is not
    shown.

    `conf`: settings of Spark that the connection names.
    """

    remote: str | None = field(default=None, repr=False)
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


SPARK_EXTRA = {
    "queue": "spark.yarn.queue",
    "namespace": "spark.kubernetes.namespace",
    "principal": "spark.kerberos.principal",
    "keytab": "spark.kerberos.keytab",
}
"""The settings of Spark for the fields of Airflow's form for a connection of type spark."""
EXTRA = ("uri", "options", "credentials_conn_id", "spark_conn_id", "kafka_conn_id", "in_task_mib")
"""The names in the extra of a connection of type lake."""


def lake_address(connection: Connection) -> LakeAddress:
    """Returns the address of the lake that a connection of type lake names.  Raises InvalidInput."""
    what = _named(connection, "lake")
    extra = _extra(connection, what)
    for name in extra:
        if name not in EXTRA:
            near = nearest(name, EXTRA)
            raise InvalidInput(
                f"{what}: unknown field {name!r} in the extra"
                + (f": did you mean {near!r}?" if near else ".")
                + f" The fields are {', '.join(EXTRA)}"
            )
    options = extra.get("options") or {}
    if isinstance(options, str):
        options = _json(options, f"{what}, field 'options'")
    if not isinstance(options, dict):
        raise InvalidInput(f"{what}, field 'options': must be a JSON object; correct the connection")
    host = (connection.host or "").strip()  # a form keeps the blanks that are pasted along
    if connection.schema:  # AIRFLOW_CONN_...=lake://s3://bucket/prefix has the prefix here
        host = f"{host.rstrip('/')}/{connection.schema.strip()}"
    in_extra = str(extra.get("uri") or "").strip()
    uri = host or in_extra
    if host and (in_extra or host).rstrip("/") != host.rstrip("/"):
        raise InvalidInput(
            f"{what}: names two lakes: its host and uri in its extra say different things; leave one out"
        )
    if not uri:
        raise InvalidInput(
            f"{what}: names no lake; write a path, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX into its host"
        )
    if "://" not in uri and not uri.startswith("/"):
        raise InvalidInput(
            f"{what}: {uri!r} is neither a URI nor a path from the root; write s3://{uri}, gs://{uri} or "
            f"/PATH/{uri} into its host"
        )
    if unread := [name for name in ("login", "password", "port") if getattr(connection, name)]:
        raise InvalidInput(
            f"{what}: its {' and '.join(unread)} would not be read; write the credentials of the store into a "
            "connection of type aws or google_cloud_platform, and name that one as its credentials"
        )
    return LakeAddress(
        uri,
        options,
        str(extra.get("credentials_conn_id") or ""),
        str(extra.get("spark_conn_id") or ""),
        _mebibytes(extra.get("in_task_mib"), f"{what}, field 'in_task_mib'") << 20,
        str(extra.get("kafka_conn_id") or ""),
    )


MOST_DIGITS = 12
"""The most digits of a size in MiB: more than any store needs."""


def _mebibytes(value: Any, what: str) -> int:
    """Returns a whole number; 0 if the field is empty.  Raises InvalidInput."""
    text = "" if value is None else str(value).strip()
    if not (text or "0").isdecimal() or len(text) > MOST_DIGITS:
        raise InvalidInput(f"{what}: must be a whole number of MiB, 0 for none (got {value!r})")
    return int(text or 0)


def store_options(connection: Connection, *, uri: str) -> dict[str, Any]:
    """Returns the options of a store for the credentials in a connection of type aws or google_cloud_platform.

    Raises InvalidInput if the connection has another type, or if its credentials are not for the kind of store
    in `uri`.
    """
    kinds = {"aws": ("s3", "s3a"), "google_cloud_platform": ("gs", "gcs")}
    what = _named(connection, *kinds)
    scheme = uri.partition("://")[0] if "://" in uri else "file"
    if scheme not in kinds[connection.conn_type or ""]:
        raise InvalidInput(
            f"{what}: holds credentials for {kinds[connection.conn_type or ''][0]}://, and the lake is at {uri}; "
            "name another connection as its credentials, or none"
        )
    extra = _extra(connection, what)
    return _aws(connection, extra, what) if connection.conn_type == "aws" else _google(extra, what)


BROKERS = "bootstrap.servers"
"""The name of the brokers in the extra of a connection of type kafka, which is that of Airflow's own provider."""


def kafka_clients(connection: Connection) -> dict[str, dict[str, str]]:
    """Returns the settings of Kafka's client in a connection of type kafka, by the brokers that it names
    (`Lake.clients`).

    Raises InvalidInput.
    """
    what = _named(connection, "kafka")
    extra = _extra(connection, what)
    brokers = extra.get(BROKERS)
    if not isinstance(brokers, str) or not brokers.strip():
        raise InvalidInput(
            f"{what}: names no brokers; write {BROKERS} into its extra, as HOST:PORT,HOST:PORT"
        )
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in extra.items()
    }
    return {brokers: {name: text for name, text in texts.items() if name != BROKERS}}


def _aws(connection: Connection, extra: Mapping[str, Any], what: str) -> dict[str, Any]:
    for name in ("role_arn", "assume_role_method", "assume_role_kwargs", "external_id"):
        if extra.get(name):
            raise InvalidInput(
                f"{what}: {name}: no role is assumed here; give the role to the workers, or write an access key "
                "into the connection"
            )
    session = _part(extra, "session_kwargs", what)
    for name in session:
        if name not in _SESSION:
            raise InvalidInput(
                f"{what}: session_kwargs may have {', '.join(_SESSION)} here (got {name!r}); remove it"
            )
    service = _part(_part(extra, "service_config", what), "s3", what)
    key = connection.login or session.get("aws_access_key_id")
    secret = connection.password or session.get("aws_secret_access_key")
    if bool(key) != bool(secret):
        raise InvalidInput(f"{what}: has only one of access key id and secret access key; write both")
    client = {  # the host is where older connections have the endpoint
        "endpoint_url": service.get("endpoint_url") or extra.get("endpoint_url") or connection.host,
        "region_name": extra.get("region_name") or session.get("region_name"),
    }
    options = {
        "key": key,
        "secret": secret,
        "token": extra.get("aws_session_token") or session.get("aws_session_token"),
        "profile": extra.get("profile_name") or session.get("profile_name"),
        "client_kwargs": {name: str(value) for name, value in client.items() if value} | _verify(extra),
    }
    return {name: value for name, value in options.items() if value}


_SESSION = (
    "profile_name",
    "region_name",
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
)
"""The fields of an aws connection's `session_kwargs` that are read."""


def _verify(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Returns whether the certificate of the endpoint is checked, or by which file; empty means the default."""
    value = extra.get("verify")
    word = str(value).strip().lower()
    if value is None or word in ("", "true"):
        return {}
    return {"verify": False if word == "false" else value}


_IDENTITIES = ("impersonation_chain", "credential_config_file", "key_secret_name", "idp_issuer_url")
"""Fields of a google_cloud_platform connection that name an identity which gcsfs cannot take."""


def _google(extra: Mapping[str, Any], what: str) -> dict[str, Any]:
    fields = {
        name.removeprefix("extra__google_cloud_platform__"): value for name, value in extra.items() if value
    }
    fields |= {name: value for name, value in extra.items() if value}  # the plain name comes first
    for name in _IDENTITIES:
        if name in fields:
            raise InvalidInput(
                f"{what}: {name} is not read here; write the key of a service account into "
                "keyfile_dict, its path into key_path, or give the identity to the workers"
            )
    account = fields.get("keyfile_dict")
    if isinstance(account, str):
        account = _json(account, f"{what}, field 'keyfile_dict'")
    token = account or fields.get("key_path")
    if str(fields.get("is_anonymous")).lower() == "true":
        token = "anon"
    options = {"token": token, "project": fields.get("project")}
    return {name: value for name, value in options.items() if value}


def _part(extra: Mapping[str, Any], name: str, what: str) -> dict[str, Any]:
    """Returns an object inside the extra, also as a text of JSON; empty if the extra has none.  Raises
    InvalidInput."""
    value = extra.get(name) or {}
    if isinstance(value, str):
        value = _json(value, f"{what}, field {name!r}")
    if not isinstance(value, dict):
        raise InvalidInput(f"{what}, field {name!r}: must be a JSON object; correct the connection")
    return value


def spark_address(connection: Connection) -> SparkAddress:
    """Returns the address of the Spark that a connection of type spark_connect or spark names.  Raises
    InvalidInput."""
    what = _named(connection, "spark_connect", "spark")
    extra = _extra(connection, what)
    host = (connection.host or "").strip().rstrip("/")
    if not host:
        raise InvalidInput(f"{what}: has no host; write the address of Spark into it")
    if connection.conn_type == "spark":
        if connection.port:
            host = f"{host}:{connection.port}"
        if extra.get("deploy-mode") == "cluster":
            raise InvalidInput(
                f"{what}: its deploy-mode is cluster, but the driver of this work runs in the task; submit the "
                "work of a group (LakeConfig(submit=...)), or write client into the connection"
            )
        conf = {setting: str(extra[name]) for name, setting in SPARK_EXTRA.items() if extra.get(name)}
        return SparkAddress(master=host, conf=conf)
    if connection.schema:  # AIRFLOW_CONN_...=spark-connect://HOST:PORT/;use_ssl=true has the parameters here
        host = f"{host}/{connection.schema.strip()}"
    place, parameters = _connect_host(host.removeprefix("sc://"), what)
    fields = {
        "user_id": connection.login,
        "token": connection.password,
        "session_id": extra.get("session_id"),
        "use_ssl": _use_ssl(extra.get("use_ssl"), what),
    }
    for name, value in fields.items():
        if value and name in parameters:
            raise InvalidInput(f"{what}: says {name} twice, in its host and in a field; leave one out")
        if value:
            parameters[name] = quote(str(value), safe="")
    if connection.port:
        place = f"{place}:{connection.port}"
    return SparkAddress(
        remote=f"sc://{place}/" + "".join(f";{name}={text}" for name, text in parameters.items())
    )


def _connect_host(host: str, what: str) -> tuple[str, dict[str, str]]:
    """Returns the host, and the parameters behind it, as in `HOST:PORT/;use_ssl=true`.  Raises InvalidInput.

    The values are not repeated in an error: one may be a token.
    """
    place, _, rest = host.partition(";")
    parameters = {}
    for part in filter(None, rest.rstrip("/").split(";")):
        name, is_pair, value = part.partition("=")
        if not (is_pair and name.strip() and value) or name in parameters:
            raise InvalidInput(
                f"{what}: the parameters in its host must be names with values, each once, as in "
                "HOST:PORT/;use_ssl=true"
            )
        parameters[name.strip()] = value
    place = place.rstrip("/")
    if not place or "/" in place:
        raise InvalidInput(f"{what}: its host must be HOST:PORT, with parameters HOST:PORT/;use_ssl=true")
    return place, parameters


def _use_ssl(value: Any, what: str) -> str:
    """Returns the value for Spark Connect, "" for no.  Raises InvalidInput for other words: a typing error would
    send the token unencrypted."""
    text = str(value).strip().lower() if value not in (None, "") else "false"
    if text not in ("true", "false"):
        raise InvalidInput(
            f"{what}, field 'use_ssl': must be true or false (got {value!r}); correct the connection"
        )
    return "true" if text == "true" else ""


def _named(connection: Connection, *kinds: str) -> str:
    """Returns the connection, in words.  Raises InvalidInput if it is of none of the types."""
    if connection.conn_type not in kinds:
        raise InvalidInput(
            f"connection {connection.conn_id!r}: is of type {connection.conn_type!r}; name one of type "
            f"{' or '.join(kinds)}"
        )
    return f"connection {connection.conn_id!r}"


def _extra(connection: Connection, what: str) -> dict[str, Any]:
    if not (connection.extra or "").strip():
        return {}
    return _json(connection.extra or "", f"{what}, its extra")


def _json(text: str, what: str) -> dict[str, Any]:
    """Returns a JSON object.  Its text is not repeated in the error: it may hold a secret."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidInput(f"{what}: must be a JSON object; correct the connection")
    return value
