"""The route that a request takes: what it asks, as a value, or why it is refused; pure.

| route | asks for | of whom |
|---|---|---|
| `POST /lakes/{lake}/query` | `Query` | a reader; a writer if it changes a pool, a keeper if it creates one |
| `GET /queries/{id}` | `EndingAsked` | a reader |
| `POST /lakes/{lake}/pools/{pool}/load` | `Load` | a writer |
| `PUT`, `DELETE /lakes/{lake}/pools/{pool}` | `PoolToCreate`, `PoolToDrop` | a keeper |

The page that the module `description` makes needs no token.  A path is split at its slashes before its parts are
decoded, as in the catalog.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from log_lake.iceberg_catalog.callers import CallerRole
from log_lake.iceberg_catalog.request import MAX_PATH, parts_of
from log_lake.loading.options import READ_OPTIONS
from log_lake.service.problems import Problem

PREFIXES = ("docs", "openapi.json", "lakes", "queries")
"""The first parts of the paths that this room answers; the catalog answers all others."""

_NOT_FOR_CLIENTS = ("expansion.max", "include", "exclude", "partitions")
"""Read options that would lift a limit of the server, or select files by name, which a body does not have."""


@dataclass(frozen=True)
class OfLake:
    """A request about one lake, which it names."""

    lake: str


@dataclass(frozen=True)
class Query(OfLake):
    """A request to run a statement of SQL, which is the body; `token`, `message` and `dry_run` are for a statement
    that changes a pool."""

    token: str = ""
    message: str = ""
    dry_run: bool = False


@dataclass(frozen=True)
class EndingAsked:
    """A request that asks how a query ended."""

    id: str


@dataclass(frozen=True)
class Load(OfLake):
    """A request to load records into a pool: the body, or the files that it lists."""

    pool: str
    token: str
    message: str
    branch: str
    format: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class PoolToCreate(OfLake):
    """A request to create a pool."""

    pool: str
    key: str
    kind: str


@dataclass(frozen=True)
class PoolToDrop(OfLake):
    """A request to drop a pool; the pool can be restored."""

    pool: str


Asked = Query | EndingAsked | Load | PoolToCreate | PoolToDrop


def is_ours(path: str) -> bool:
    """Whether the path is one of this room."""
    return path.removeprefix("/").partition("/")[0] in PREFIXES


def role_for(asked: Asked) -> CallerRole:
    """Returns the least role that may send this request.  A statement that changes a pool also needs a
    writer."""
    match asked:
        case Query() | EndingAsked():
            return CallerRole.READER
        case Load():
            return CallerRole.WRITER
        case PoolToCreate() | PoolToDrop():
            return CallerRole.KEEPER


def asked_by(method: str, path: str, query: str) -> Asked:
    """Returns what the request asks for.  Raises Problem, and InvalidInput for a path that cannot be read."""
    match parts_of(path):
        case ("queries", id):
            _check_method(method, "GET")
            return EndingAsked(id)
        case ("lakes", lake, "query"):
            _check_method(method, "POST")
            given = _parameters(query, ("token", "message", "dry_run"))
            return Query(lake, given.get("token", ""), given.get("message", ""), _flag(given, "dry_run"))
        case ("lakes", lake, "pools", pool, "load"):
            _check_method(method, "POST")
            return _load(lake, pool, query)
        case ("lakes", lake, "pools", pool):
            _check_method(method, "PUT", "DELETE")
            if method == "DELETE":
                _parameters(query, ())
                return PoolToDrop(lake, pool)
            given = _parameters(query, ("key", "kind"))
            if not given.get("key"):
                raise Problem(400, "key: a pool needs a key; add ?key=FIELD")
            return PoolToCreate(lake, pool, given["key"], given.get("kind") or "append")
    raise Problem(404, "there is no such route; GET /docs shows those that are there")


def _load(lake: str, pool: str, query: str) -> Load:
    names = ("token", "message", "branch", "format")
    options = tuple(name for name in READ_OPTIONS if name not in _NOT_FOR_CLIENTS)
    given = _parameters(query, (*names, *options), also="type.")
    if not given.get("token"):
        raise Problem(
            400, "token: a load needs one: add ?token=TEXT, the same if you send the same records again"
        )
    return Load(
        lake,
        pool,
        given["token"],
        given.get("message", ""),
        given.get("branch") or "main",
        given.get("format", ""),
        {name: value for name, value in given.items() if name not in names},
    )


def _parameters(query: str, names: Collection[str], *, also: str = "\n") -> Mapping[str, str]:
    """Returns the parameters.  Raises Problem for a name that is not in `names` and does not begin with
    `also`."""
    if len(query) > MAX_PATH:
        raise Problem(400, f"the query has more than {MAX_PATH:,} characters; shorten it")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict")
    except ValueError as error:  # not UTF-8, or too many
        raise Problem(400, f"the query cannot be read: {error}") from error
    given = dict(pairs)
    for name in given:
        if name not in names and not name.startswith(also):
            listed = ", ".join(names) or "none"
            raise Problem(400, f"parameter {name[:64]!r} is not known here; the parameters are {listed}")
    if len(given) < len(pairs):
        raise Problem(400, "a parameter is there twice; give each once")
    return given


def _flag(given: Mapping[str, str], name: str) -> bool:
    value = given.get(name, "false").lower()
    if value not in ("true", "false"):
        raise Problem(400, f"{name}={value[:64]}: write true or false")
    return value == "true"


def _check_method(method: str, *allowed: str) -> None:
    if method not in allowed:
        raise Problem(
            405, f"{method[:16]}: this route takes {' and '.join(allowed)}; GET /docs shows the routes"
        )
