"""The least rights of each role on a bucket: the tables of docs/trust.md, and policies for S3 and Google.

    python -m local.rights                                        writes the tables
    python -m local.rights s3 ROLE BUCKET PREFIX [POOL JOBS]      a policy of S3, as JSON
    python -m local.rights gcs ROLE BUCKET PREFIX [POOL JOBS]     permissions of Google, each with its condition

POOL and JOBS are the ids of a pool and of `$jobs`; the default is every pool (`*`).  The test
tests/unit/trust/test_rights.py runs each role's work with these rights, and again without each single right.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/trust.md"
BEGIN = "<!-- rights: python -m local.rights -->\n"
END = "<!-- end of rights -->\n"


class Operation(Enum):
    """An operation on an object.  A put creates or overwrites.

    A list always concerns the whole bucket (decision 188).
    """

    READ = "read"
    LIST = "list"
    CREATE = "create"
    PUT = "put"
    DELETE = "delete"


S3 = {
    Operation.READ: "s3:GetObject",
    Operation.LIST: "s3:ListBucket",
    Operation.CREATE: "s3:PutObject",
    Operation.PUT: "s3:PutObject",
    Operation.DELETE: "s3:DeleteObject",
}
GOOGLE = {
    Operation.READ: ("storage.objects.get",),
    Operation.LIST: ("storage.objects.list",),
    Operation.CREATE: ("storage.objects.create",),
    Operation.PUT: ("storage.objects.create", "storage.objects.delete"),
    Operation.DELETE: ("storage.objects.delete",),
}


@dataclass(frozen=True)
class Right:
    """The right to an operation on the objects whose names match; `*` matches any text, slashes included.

    POOL and JOBS stand for ids.  `lost`: what the role loses without the right; "" if it cannot work without it.
    """

    operation: Operation
    names: str
    lost: str = ""

    def is_of(self, operation: Operation, name: str, ids: dict[str, str]) -> bool:
        """Whether the right allows the operation on the name, with these ids for POOL and JOBS."""
        does = operation is self.operation or (operation, self.operation) == (CREATE, PUT)
        return does and fnmatchcase(name, named(self.names, ids))


def named(names: str, ids: dict[str, str]) -> str:
    """The pattern with ids in place of POOL and JOBS."""
    for word, id in ids.items():
        names = names.replace(word, id)
    return names


@dataclass(frozen=True)
class Role:
    """What a process does, and the rights that it needs."""

    does: str
    rights: tuple[Right, ...]


READ, LIST, CREATE, PUT, DELETE = Operation


def _rights(names: str, *operations: Operation, lost: str = "") -> tuple[Right, ...]:
    return tuple(Right(operation, names, lost) for operation in operations)


_LAKE = (
    *_rights("lake.json", READ),
    *_rights("pools*", READ),
    *_rights("*", LIST),
)
_POOL = (*_LAKE, *_rights("POOL/journal*", READ))
_READ_LEASE = _rights("POOL/leases/*", PUT, DELETE, lost="a vacuum may delete what a long read still needs")
_WRITE_LEASE = _rights(
    "POOL/leases/*",
    PUT,
    DELETE,
    lost="a vacuum may delete the new objects of a long load, which then fails",
)
_NOTE = "agents may see the change up to a day late"
_HEAD = _rights("POOL/journal/HEAD", PUT, lost="readers send more requests")
_BEGUN = "a journal whose folder is lost is taken for one that is empty"
_COMMIT = (
    *_rights("POOL/journal/*.txn", CREATE),
    *_HEAD,
    *_rights("POOL/journal-begun", PUT, lost=_BEGUN),
    *_rights("POOL/journal/requests/*", PUT, lost="a writer that loses races tries alone"),
    *_rights("POOL/journal/requests/*", DELETE, lost="its drafts stay for a while, and cost others requests"),
)
_ACTIVITY = _rights("activity/POOL", PUT, lost=_NOTE)
_PURGE = (
    *_rights("POOL/journal/marks/*", CREATE),
    *_rights("POOL/journal-gates/*", CREATE),
    *_rights("POOL/journal-begun", PUT, lost=_BEGUN),
    *_rights("POOL/journal/*", DELETE),
)
_TAIL = _rights("POOL/journal/TAIL", PUT)
_AGENT = (
    *_rights("packs/*", READ, PUT, DELETE),
    *_rights("quiet/*", READ, PUT, lost="each run looks at every pool"),
    *_rights("activity/JOBS", PUT, lost=_NOTE),
    *_rights("JOBS/*", READ, CREATE, lost="its work is not in lake jobs"),
    *_rights(
        "JOBS/leases/*", PUT, DELETE, lost="a job that lasts, or has ended, is shown as died or running"
    ),
)
_NEW_DATA = _rights("POOL/data/*", CREATE)
_OLD_DATA = _rights("POOL/data/*", READ)
_HELD = (*_rights("POOL/leases/*", READ, PUT, DELETE),)
_DERIVED = (*_POOL, *_OLD_DATA, *_NEW_DATA, *_COMMIT, *_ACTIVITY, *_WRITE_LEASE)
_ERASE = (
    *_POOL,
    *_OLD_DATA,
    *_NEW_DATA,
    *_rights("POOL/data/*", DELETE),
    *_COMMIT,
    *_rights("activity/POOL", PUT),
    *_PURGE,
    *_rights("POOL/journal/TAIL", PUT, lost="readers send more requests"),
    *_HELD,
    *_rights("POOL/erasures/*", READ, PUT),
)

ROLES = {
    "reader": Role("lists pools, reads their records and history", (*_POOL, *_OLD_DATA, *_READ_LEASE)),
    "loader": Role(
        "loads records, also by a bulk import", (*_POOL, *_NEW_DATA, *_COMMIT, *_ACTIVITY, *_WRITE_LEASE)
    ),
    "deleter": Role(
        "deletes records by a condition or a range of keys: they are hidden, and their objects stay",
        (*_POOL, *_OLD_DATA, *_COMMIT, *_ACTIVITY),
    ),
    "small loader": Role(
        "loads records that fit into the journal (load.inline); larger loads need the loader's rights",
        (*_POOL, *_COMMIT, *_ACTIVITY),
    ),
    "SQL": Role("runs the statements that change a pool: INSERT, UPDATE, DELETE, TRUNCATE, MERGE", _DERIVED),
    "rekeyer": Role(
        "makes a second pool with another key (lake rekey), or of a query (CREATE TABLE ... AS); POOL is `*`, "
        "as the new pool's id is not known",
        (
            *_POOL,
            *_OLD_DATA,
            *_NEW_DATA,
            *_rights("pools/*.txn", CREATE),
            *_rights("POOL/journal/*.txn", CREATE),
            *_rights("POOL/journal-begun", PUT, lost=_BEGUN),
            *_ACTIVITY,
            *_READ_LEASE,
        ),
    ),
    "catalog": Role(
        "answers as an Iceberg catalog, and publishes tables for it (lake serve, the plugin of Airflow)",
        (
            *_POOL,
            *_OLD_DATA,
            *_COMMIT,
            *_ACTIVITY,
            *_rights("POOL/journal/marks/*", CREATE),
            *_rights("POOL/published/*", READ, PUT),
        ),
    ),
    "catalog that reads": Role(
        "answers with the newest tables that were published (lake serve --read-only)",
        (*_POOL, *_rights("POOL/published/*", READ)),
    ),
    "doctor": Role(
        "says what is wrong in a lake (lake doctor); POOL is `*`",
        (
            *_POOL,
            *_rights("JOBS/data/*", READ),
            *_rights("POOL/leases/*", READ),
            *_rights("quiet/*", READ, lost="each run looks at every pool"),
            *_rights("quiet/*", PUT),
            *_rights("JOBS/leases/*", CREATE, DELETE, lost="ages are told by the clock of its machine"),
            *_rights("probe-*", READ, CREATE, DELETE),
        ),
    ),
    "agent ingest": Role(
        "loads files that have arrived",
        (
            *_POOL,
            *_NEW_DATA,
            *_COMMIT,
            *_ACTIVITY,
            *_WRITE_LEASE,
            *_rights("POOL/parked/*", READ, PUT, DELETE),
            *_AGENT,
        ),
    ),
    "agent intervals": Role(
        "replaces intervals of time", (*_POOL, *_NEW_DATA, *_COMMIT, *_ACTIVITY, *_WRITE_LEASE, *_AGENT)
    ),
    "agent derive": Role(
        "keeps derived pools, from other pools of the lake",
        (*_POOL, *_OLD_DATA, *_NEW_DATA, *_COMMIT, *_ACTIVITY, *_WRITE_LEASE, *_AGENT),
    ),
    "agent compact": Role("merges objects", (*_DERIVED, *_AGENT)),
    "agent tombstones": Role("rewrites objects to remove deleted records", (*_DERIVED, *_AGENT)),
    "agent split": Role(
        "splits and joins ranges of keys", (*_POOL, *_OLD_DATA, *_COMMIT, *_ACTIVITY, *_AGENT)
    ),
    "agent index": Role(
        "makes the indexes that objects lack, and replaces damaged ones",
        (
            *_POOL,
            *_OLD_DATA,
            *_rights("POOL/data/index/*", CREATE, DELETE),
            *_rights("POOL/leases/*", PUT),
            *_rights("POOL/leases/*", DELETE, lost="a vacuum keeps some objects until its lease has died"),
            *_AGENT,
        ),
    ),
    "agent checkpoint": Role(
        "writes checkpoints and purges old entries, of pools and of the list of pools",
        (
            *_POOL,
            *_PURGE,
            *_TAIL,
            *_rights("pools/marks/*", CREATE),
            *_rights("pools-gates/*", CREATE),
            *_rights("pools/*", DELETE),
            *_rights("pools/TAIL", PUT),
            *_rights("pools-begun", PUT, lost=_BEGUN),
            *_AGENT,
        ),
    ),
    "agent retention": Role(
        "expires records, deletes objects that nothing needs, purges old entries",
        (*_POOL, *_rights("POOL/data/*", DELETE), *_COMMIT, *_ACTIVITY, *_HELD, *_PURGE, *_TAIL, *_AGENT),
    ),
    "agent erasure": Role("removes records from every object, with a receipt", (*_ERASE, *_AGENT)),
    "eraser": Role("the same by the command lake erase", _ERASE),
    "administrator": Role(
        "makes and upgrades a lake; makes, configures, drops and restores pools",
        (
            *_POOL,
            *_rights("lake.json", PUT),
            *_rights("probe-*", READ, CREATE, DELETE),
            *_rights("pools/*.txn", CREATE),
            *_rights("pools/HEAD", PUT, lost="readers send more requests"),
            *_rights("POOL/journal/*.txn", CREATE),
            *_ACTIVITY,
        ),
    ),
    "sweeper": Role(
        "deletes dropped pools for good (lake vacuum --dropped); POOL is the dropped one",
        (
            *_POOL,
            *_rights("POOL/leases/*", READ, CREATE),
            *_rights("pools/*.txn", CREATE),
            *_rights("POOL/*", DELETE),
            *_rights("activity/POOL", DELETE),
        ),
    ),
}


def allows(role: Role, operation: Operation, name: str, ids: dict[str, str]) -> bool:
    """Whether a role may do the operation on an object; for a list, the name does not count."""
    return any(
        right.operation is operation if operation is LIST else right.is_of(operation, name, ids)
        for right in role.rights
    )


def tables() -> Iterator[str]:
    """The lines of a table for each role."""
    for name, role in ROLES.items():
        yield from (f"**{name}**: {role.does}.", "")
        yield from ("| objects | needs to | may also | without which |", "|---|---|---|---|")
        for names in dict.fromkeys(right.names for right in role.rights):
            of_names = [right for right in role.rights if right.names == names]
            needs = ", ".join(right.operation.value for right in of_names if not right.lost)
            also = ", ".join(right.operation.value for right in of_names if right.lost)
            lost = "; ".join(dict.fromkeys(right.lost for right in of_names if right.lost))
            shown = "all of the bucket" if names == "*" else f"`{names}`"
            yield f"| {shown} | {needs} | {also} | {lost} |"
        yield ""


def with_tables(page: str) -> str:
    """The text of the page with the current tables."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n" + "".join(f"{line}\n" for line in tables()) + f"{END}{after}"


def s3_policy(role: Role, bucket: str, prefix: str, ids: dict[str, str]) -> dict[str, object]:
    """An AWS policy for a role, with the optional rights."""
    resources: dict[str, list[str]] = {}
    for right in role.rights:
        if right.operation is not LIST:
            actions = [S3[right.operation]] + ["s3:AbortMultipartUpload"] * (right.operation in (CREATE, PUT))
            for action in actions:
                path = f"arn:aws:s3:::{bucket}/{_below(prefix)}{named(right.names, ids)}"
                resources.setdefault(action, [])
                if path not in resources[action]:
                    resources[action].append(path)
    statements: list[dict[str, object]] = [
        {"Effect": "Allow", "Action": action, "Resource": paths} for action, paths in resources.items()
    ]
    lists = {"Effect": "Allow", "Action": S3[LIST], "Resource": f"arn:aws:s3:::{bucket}"}
    return {"Version": "2012-10-17", "Statement": [lists, *statements]}


def google_bindings(role: Role, bucket: str, prefix: str, ids: dict[str, str]) -> list[dict[str, object]]:
    """Google's permissions for a role, with the optional rights; each set becomes a custom role with this
    condition."""
    conditions: dict[str, list[str]] = {}
    for right in role.rights:
        for permission in GOOGLE[right.operation]:
            condition = "" if right.operation is LIST else _matches(right.names, bucket, prefix, ids)
            conditions.setdefault(permission, [])
            if condition not in conditions[permission]:
                conditions[permission].append(condition)
    return [
        {"permissions": [permission], "condition": {"expression": " || ".join(texts)} if all(texts) else None}
        for permission, texts in conditions.items()
    ]


def _matches(names: str, bucket: str, prefix: str, ids: dict[str, str]) -> str:
    """Google's condition for names that match a pattern.

    It can only test how a name begins and ends, so with POOL=* it allows more than the pattern.
    """
    begin, star, end = named(names, ids).partition("*")
    name = f"projects/_/buckets/{bucket}/objects/{_below(prefix)}{begin}"
    if not star:
        return f'resource.name == "{name}"'
    last = end.rpartition("*")[2]
    starts = f'resource.name.startsWith("{name}")'
    return f'({starts} && resource.name.endsWith("{last}"))' if last else starts


def _below(prefix: str) -> str:
    return f"{prefix.strip('/')}/" if prefix.strip("/") else ""


def main(argv: Sequence[str]) -> str:
    """The text to print; "" if it wrote the tables of the page."""
    if not argv:
        PAGE.write_text(with_tables(PAGE.read_text()))
        return ""
    kind, name, bucket, prefix, *given = argv
    ids = dict(zip(("POOL", "JOBS"), [*given, "*", "*"], strict=False))
    make = {"s3": s3_policy, "gcs": google_bindings}[kind]
    return json.dumps(make(ROLES[name], bucket, prefix, ids), indent=2)


if __name__ == "__main__":
    print(main(sys.argv[1:]), end="\n" if sys.argv[1:] else "")
