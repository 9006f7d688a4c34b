"""Opens S3 and Google Cloud Storage through fsspec, after a check for credentials.

Without credentials the libraries fail late: s3fs with a traceback at the first request, gcsfs after a minute of
requests to a metadata server and of repeated anonymous requests.  So before any request the lake searches where
the libraries would search.  If it finds none, it reports in one line where it searched and which variable to
set (decision 31).  Options that identify the caller (a key, a token, `anon`), or that fsspec's own
configuration adds, are passed on unchanged.

Called by `cloud`; code that opens a bucket by other means should call `open_filesystem` too.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fsspec
from fsspec.asyn import sync
from fsspec.config import apply_config

from lake_core.errors import InvalidInput, Unavailable, words
from log_lake.extras import need_of_bucket
from log_lake.stores.patience import given_seconds

METADATA_SECONDS = 1.0
"""How many seconds to wait for Google's metadata server. If it exists, it is in the machine's own network."""

_FOR_NOW = ("CredentialRetrievalError", "MetadataRetrievalError", "TransportError", "FSTimeoutError")
"""Temporary errors of the libraries: the credentials exist, but their server does not answer now."""

_S3_SOURCES = "the variables AWS_..., the files in ~/.aws, or the options of the store"
_GCS_SOURCES = "GOOGLE_APPLICATION_CREDENTIALS, or the options of the store"
_S3_IDENTITY = ("key", "secret", "token", "anon", "session", "username", "password")


def open_filesystem(uri: str, options: Mapping[str, Any] | None = None) -> Any:
    """Returns the fsspec file system of a URI in S3 or Google Cloud Storage.  Its listings are not cached, and its
    requests are counted.

    Raises InvalidInput if there are no credentials, if the options are wrong, or if the package for the store
    is not installed.  Raises Unavailable if the credentials exist but their server does not answer now.
    """
    need_of_bucket(uri)
    opened, sources = (_s3, _S3_SOURCES) if uri.startswith("s3") else (_gcs, _GCS_SOURCES)
    from log_lake.stores import sends  # needs the client's own packages

    counted = (sends.s3_options if uri.startswith("s3") else sends.gs_options)(options or {})
    try:
        return opened(uri, {**counted, "use_listings_cache": False})
    except (InvalidInput, Unavailable):
        raise
    except Exception as error:  # the libraries raise their own, unrelated classes
        if type(error).__name__ in _FOR_NOW:
            raise Unavailable(
                f"{uri}: the credentials cannot be read now: {words(error)}; try again"
            ) from error
        raise InvalidInput(f"{uri}: {words(error)}; correct {sources}") from error


def _s3(uri: str, given: Mapping[str, Any]) -> Any:
    options = apply_config(fsspec.get_filesystem_class("s3"), dict(given))
    fs = fsspec.filesystem("s3", **options)
    # as the first request would do: a wrong option fails here, and the client looks for credentials
    sync(fs.loop, fs.set_session, timeout=given_seconds())
    client = options.get("client_kwargs") or {}
    if any(options.get(name) for name in _S3_IDENTITY) or client.get("aws_access_key_id"):
        return fs
    if sync(fs.loop, fs.session.get_credentials, timeout=given_seconds()) is None:
        fs.clear_instance_cache()  # otherwise this process would never find credentials that are set later
        profile = options.get("profile") or os.environ.get("AWS_PROFILE") or "default"
        raise InvalidInput(
            f"{uri}: no credentials for S3: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor the profile "
            f"{profile!r} in ~/.aws, nor a role of this machine or container. Set the two variables, or "
            "AWS_PROFILE; for a public bucket set FSSPEC_S3_ANON=true"
        )
    return fs


def _gcs(uri: str, given: Mapping[str, Any]) -> Any:
    options = apply_config(fsspec.get_filesystem_class("gcs"), dict(given))
    token = options.get("token")
    if isinstance(token, str) and _is_path(token) and not os.path.isfile(token):
        raise InvalidInput(
            f"{uri}: the key file {token!r} does not exist on this machine; put the key of a service account "
            "there, or name another file"
        )
    if token is not None:
        return fsspec.filesystem("gcs", **options)
    if os.environ.get("STORAGE_EMULATOR_HOST"):
        return fsspec.filesystem("gcs", **{**options, "token": "anon"})
    default = Path(os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud")
    default /= "application_default_credentials.json"
    is_file = bool(os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")) or default.exists()
    reason: Exception | None = None
    if is_file or _has_metadata_server():
        try:
            return fsspec.filesystem("gcs", **{**options, "token": "google_default"})
        except Exception as error:
            if is_file or type(error).__name__ != "DefaultCredentialsError":
                raise
            reason = error  # a server answered that is not Google's
    raise InvalidInput(
        f"{uri}: no credentials for Google Cloud Storage: neither GOOGLE_APPLICATION_CREDENTIALS, nor {default}, "
        "nor a metadata server of Google. Set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account, or "
        "run gcloud auth application-default login; for a public bucket set FSSPEC_GCS_TOKEN=anon"
    ) from reason


_REFUSED = {
    "ExpiredToken": "the token has expired: get a new one",
    "ExpiredTokenException": "the token has expired: get a new one",
    "TokenRefreshRequired": "the token has expired: get a new one",
    "InvalidToken": "the token is not valid: get a new one",
    "InvalidAccessKeyId": "the store does not know the key: correct it",
    "SignatureDoesNotMatch": "the secret does not belong to the key: correct both",
    "InvalidSignature": "the secret does not belong to the key: correct both",
    "RequestTimeTooSkewed": "the clock of this machine is wrong by more than 15 minutes: set it",
    "AccessDenied": "the credentials have no right to this: grant it, or use others",
}
"""By the code in S3's answer: why S3 refused the credentials, and what to do."""

_METHODS = {
    "explicit": "the options of the store",
    "env": "the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
    "shared-credentials-file": "~/.aws/credentials",
    "config-file": "~/.aws/config",
    "iam-role": "the role of this machine",
    "container-role": "the role of this container",
    "sso": "the login of `aws sso`",
}


def refused_credentials(fs: Any, uri: str, *, code: str, status: int | None) -> str:
    """Returns one line: which credentials a store refused, why, and what to do; "" if it refused something else.

    The line has the beginning and the end of a key's name, and nothing of a secret.
    """
    if uri.startswith("s3"):
        return f"{code}: {_REFUSED[code]}; used was the {_s3_identity(fs)}" if code in _REFUSED else ""
    if status != 401:
        return ""
    named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS") or "the default of this machine, or the options"
    return f"the token has expired or is not valid: log in again, or name another key file; used was {named}"


def _s3_identity(fs: Any) -> str:
    client = fs.client_kwargs or {}
    key = fs.key or client.get("aws_access_key_id")
    method = "explicit"
    if not key:
        with contextlib.suppress(Exception):  # a message must not fail for want of a detail
            credentials = sync(fs.loop, fs.session.get_credentials, timeout=METADATA_SECONDS)
            key, method = credentials.access_key, credentials.method
    if not key:
        return "public right: no key was sent"
    shown = f"{key[:4]}...{key[-4:]}" if len(key) > 12 else f"{key[:2]}..."
    return f"key {shown} from {_METHODS.get(method, method)}"


def _is_path(token: str) -> bool:
    """Whether a token is the path of a key file; gcsfs sends a path without a file as a token."""
    return os.path.isabs(token) or token.endswith(".json")


def _has_metadata_server() -> bool:
    """Whether a server answers at the address of Google's metadata server, or at the one that environment
    variables name."""
    if os.environ.get("NO_GCE_CHECK") == "true":
        return False
    address = os.environ.get("GCE_METADATA_HOST") or os.environ.get("GCE_METADATA_IP") or "169.254.169.254"
    host, _, port = address.partition(":")
    try:
        socket.create_connection((host, int(port or 80)), timeout=METADATA_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True
