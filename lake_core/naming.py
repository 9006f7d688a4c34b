"""The names of all objects on the store.

Only this module spells or parses a name (docs/format.md, "Names").  Ids are spelled by `ids`. Versions are
spelled in 20 digits, so that names sort as numbers do. An id or a folder may come from the store, where others
write too: one that would lead elsewhere (`..`, a slash) is Corrupt, before any request (decision 170). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from lake_core.errors import Corrupt, InvalidInput
from lake_core.ids import ID_LENGTH, home_of, is_id, without_home

LAKE_FILE = "lake.json"
POOLS_JOURNAL = "pools"

NOKEY = "$nokey"
"""Sub-pool of the records that lack the pool key; its key is the order of arrival."""

REJECTED = "$rejected"
"""Sub-pool of the records that could not be read, under the policy bad_records=quarantine."""
SUB_POOLS = (NOKEY, REJECTED)

SMALL, LARGEST = 1 << 20, 1 << 30
"""The most bytes of a hint, a lease or a note; and the most of any other object that is read whole.  A lease
with the largest metadata has half of `SMALL`."""

_SMALL = ("/HEAD", "/TAIL", "-begun", ".fence", ".gate", ".lease", "/given-up", LAKE_FILE)


def most_bytes(name: str) -> int:
    """Returns the most bytes that an object with this name may have to be read whole."""
    folders = name.split("/")
    is_small = name.endswith(_SMALL) or folders[0] == TRANSACTIONS or folders[1:2] == ["parked"]
    return SMALL if is_small else LARGEST


def check_objects(objects: Iterable[str], *, what: str) -> None:
    """Raises Corrupt if a stored text is not a valid name of an object."""
    bad = next((id for id in objects if not is_object(id)), None)
    if bad is not None:
        raise Corrupt(f"{what}: {bad[:80]!r} is not the id of an object")


_PLAIN = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-.~$")
"""Characters of one part of a name."""


def _part(text: str) -> str:
    """Returns the text as one part of a name.  Raises Corrupt if the name would lead out of the part's place."""
    if text and _PLAIN.issuperset(text) and text.strip("."):
        return text
    raise Corrupt(
        f"{text[:80]!r}: an id with other characters than letters and digits leads out of its folder"
    )


def entry(journal: str, version: int) -> str:
    """Returns the name of an entry: `<journal>/<20 digits>.txn`."""
    return f"{journal}/{version:020d}.txn"


def entry_version(name: str) -> int | None:
    """Returns the version in an entry's name; None if it is not the name of an entry."""
    stem, dot, suffix = name.rpartition("/")[2].partition(".")
    return int(stem) if dot and suffix == "txn" and _is_number(stem) else None


def head(journal: str) -> str:
    """Returns the name of the HEAD hint, which says where the journal ended when the hint was written."""
    return f"{journal}/HEAD"


def tail(journal: str) -> str:
    """Returns the name of the TAIL hint, which says where the journal began when the hint was written."""
    return f"{journal}/TAIL"


def begun(journal: str) -> str:
    """Returns the name of the sign that a journal has had entries; it lies beside the journal's folder."""
    return f"{journal}-begun"


def gates(journal: str) -> str:
    """Returns the folder of a journal's gates, beside its own."""
    return f"{journal}-gates"


def gate(journal: str, number: int) -> str:
    """Returns the name of the gate with this number, made by the purge with this number."""
    return f"{journal}-gates/{number:020d}.gate"


def gate_number(name: str) -> int | None:
    """Returns the number in a gate's name; None if it is not the name of a gate."""
    stem, dot, suffix = name.rpartition("/")[2].partition(".")
    return int(stem) if dot and suffix == "gate" and _is_number(stem) else None


def marks(journal: str) -> str:
    """Returns the folder of a journal's checkpoints and fences."""
    return f"{journal}/marks"


def checkpoint(journal: str, version: int, id: str) -> str:
    """Returns the name of a checkpoint of a version; the end of the writer's `id` distinguishes writers of the
    same version."""
    return f"{journal}/marks/{version:020d}.{_part(id)[-8:]}.checkpoint"


def fence(journal: str, version: int) -> str:
    """Returns the name of the fence up to which entries are purged."""
    return f"{journal}/marks/{version:020d}.fence"


def request(journal: str, id: str) -> str:
    """Returns the name of the request of a draft, which the writer of the next entry may commit."""
    return f"{journal}/requests/{_part(id)}.txn"


def requests(journal: str) -> str:
    """Returns the folder of a journal's requests."""
    return f"{journal}/requests"


def request_id(name: str) -> str:
    """Returns the id in a request's name."""
    return name.rpartition("/")[2].partition(".")[0]


def is_request(name: str) -> bool:
    """Whether the name is that of a request."""
    folder, _, file = name.rpartition("/")
    return folder.endswith("/requests") and file.endswith(".txn")


def checkpoint_version(name: str) -> int | None:
    """Returns the version in a checkpoint's name; None if it is not the name of a checkpoint."""
    stem, dot, suffix = name.rpartition("/")[2].partition(".")
    id8, _, kind = suffix.partition(".")
    return int(stem) if dot and kind == "checkpoint" and len(id8) == 8 and _is_number(stem) else None


def fence_version(name: str) -> int | None:
    """Returns the version in a fence's name; None if it is not the name of a fence."""
    stem, dot, suffix = name.rpartition("/")[2].partition(".")
    return int(stem) if dot and suffix == "fence" and _is_number(stem) else None


def _is_number(stem: str) -> bool:
    return len(stem) == 20 and stem.isascii() and stem.isdigit()


def pool_journal(pool_id: str) -> str:
    """Returns the folder of a pool's journal."""
    return f"{_part(pool_id)}/journal"


PARQUET, ZNG, ZST = "parquet", "zng", "zst"
FORMATS = (PARQUET, ZNG, ZST)
"""The formats of data objects."""

OBJECT_LENGTH = ID_LENGTH + 4
"""The most characters of an object's name in its folder."""


def object_id_of(id: str, format: str) -> str:
    """Returns the name of an object of a format: its id, followed by the format unless that is Parquet."""
    return id if format == PARQUET else f"{id}.{format}"


def format_in(sub_pool: str, format: str) -> str:
    """Returns the format of a sub-pool's objects; `format` is the pool's.  Rejected records never keep their
    types."""
    return PARQUET if sub_pool == REJECTED else format


def format_of(object_id: str) -> str:
    """Returns the format of an object with this name."""
    return without_home(object_id).partition(".")[2] or PARQUET


def is_object(text: str) -> bool:
    """Whether a data object may have this name; a clone names some with the pool in whose folder they lie."""
    own, at, home = text.partition("@")
    id, dot, format = own.partition(".")
    return (
        is_id(id) and (format in FORMATS and format != PARQUET if dot else True) and (not at or is_id(home))
    )


def data_object(pool_id: str, object_id: str) -> str:
    """Returns an object's stored name: in the folder of its home (`ids.home_of`) or, without one, the pool's."""
    id = without_home(object_id)
    return f"{_part(home_of(object_id) or pool_id)}/data/{_part(id)}" + ("" if "." in id else f".{PARQUET}")


def leases(pool_id: str) -> str:
    """Returns the folder of a pool's leases."""
    return f"{_part(pool_id)}/leases"


def lease(pool_id: str, id: str) -> str:
    """Returns the name of a lease of a pool."""
    return f"{_part(pool_id)}/leases/{_part(id)}.lease"


def lease_id(name: str) -> str | None:
    """Returns the id in a lease's name; None if it is not the name of a lease."""
    id, dot, suffix = name.rpartition("/")[2].partition(".")
    return id if dot and suffix == "lease" and is_id(id) else None


def plans(pool_id: str) -> str:
    """Returns the folder of the plans of vacuums."""
    return f"{_part(pool_id)}/plans"


def plan(pool_id: str, id: str) -> str:
    """Returns the name of the plan of a vacuum."""
    return f"{_part(pool_id)}/plans/{_part(id)}.json"


PACKS = "packs"
"""The folder of the packs of work of the whole lake."""


def pack(plan_id: str, number: int, digest: str = "") -> str:
    """Returns the name of a pack of work: the number of its task, below 100, in the plan with that id; `digest` is
    the digest of its bytes.

    The outcome of a pack has no digest in its name, because the name is chosen before its content is known.
    """
    return f"{PACKS}/{_part(plan_id)}.{number:02d}{f'.{_part(digest)}' if digest else ''}.json"


def pack_digest(name: str) -> str:
    """Returns the digest in a pack's name, "" if it has none."""
    parts = name.removeprefix(f"{PACKS}/").split(".")
    return parts[2] if name.startswith(f"{PACKS}/") and len(parts) == 4 else ""


QUIET = "quiet"
"""The folder in which agents remember their runs."""


def quiet(agent: str, way: str) -> str:
    """Returns the name of the hint in which an agent notes the pools where it found nothing to do; `way` is a
    digest of its parameters."""
    return f"{QUIET}/{_part(agent)}.{_part(way)}.json"


ACTIVITY = "activity"
"""The folder of the activity notes of all pools."""


def activity(pool_id: str) -> str:
    """Returns the name of the activity note of a pool."""
    return f"{ACTIVITY}/{_part(pool_id)}"


def noted_pool(name: str) -> str:
    """Returns the pool id in the name of an activity note; for a name deeper in the folder, no valid id."""
    return name.removeprefix(f"{ACTIVITY}/")


TRANSACTIONS = "transactions"
"""The folder of the transactions over several pools."""

BEGUN, LEASE, DECISION, ASKED = "begun", "lease", "decision", "asked"
"""The kinds of objects of such a transaction, besides one for each pool that joined (`joined`)."""


def transaction(id: str) -> str:
    """Returns the folder of a transaction over several pools."""
    return f"{TRANSACTIONS}/{_part(id)}"


def transaction_object(id: str, kind: str) -> str:
    """Returns the name of a transaction's object of this kind (`BEGUN`, `LEASE`, `DECISION`, `ASKED`)."""
    return f"{transaction(id)}/{kind}"


def joined(id: str, pool_id: str) -> str:
    """Returns the name of the object that shows that a pool joined a transaction over pools."""
    return f"{transaction(id)}/joined-{_part(pool_id)}"


def split_transaction(name: str) -> tuple[str, str]:
    """Returns the transaction's id and the kind in the name of its object; two empty texts for other names."""
    folder, _, rest = name.partition("/")
    id, _, kind = rest.partition("/")
    return (id, kind) if folder == TRANSACTIONS and is_id(id) and kind else ("", "")


def joined_pool(kind: str) -> str:
    """Returns the id of the pool in a name `joined-<pool>`; "" for any other name."""
    id = kind.removeprefix("joined-")
    return id if id != kind and is_id(id) else ""


def transaction_branch(id: str) -> str:
    """Returns the branch on which a transaction over several pools writes, in each of them."""
    return f"tx-{id}"


def transaction_of(branch: str) -> str:
    """Returns the id of the transaction that writes on the branch; "" if it is another branch."""
    id = branch.removeprefix("tx-")
    return id if id != branch and is_id(id) else ""


def clone_tag(pool_id: str) -> str:
    """Returns the name of the tag by which a pool keeps what its clone with this id began with."""
    return f"clone-{pool_id}"


def clone_of(tag: str) -> str:
    """Returns the id of the clone for which a pool has this tag; "" for any other tag."""
    id = tag.removeprefix("clone-")
    return id if id != tag and is_id(id) else ""


def erasures(pool_id: str) -> str:
    """Returns the folder of a pool's erasures."""
    return f"{_part(pool_id)}/erasures"


def erasure(pool_id: str, id: str) -> str:
    """Returns the name of the receipt of an erasure."""
    return f"{_part(pool_id)}/erasures/{_part(id)}.json"


def data(pool_id: str) -> str:
    """Returns the folder of a pool's data objects."""
    return f"{_part(pool_id)}/data"


def data_id(name: str) -> str | None:
    """Returns the object's own name in a name on the store; None if it is not the name of a data object."""
    id, dot, suffix = name.rpartition("/")[2].partition(".")
    return object_id_of(id, suffix) if dot and suffix in FORMATS and is_id(id) else None


def published(pool_id: str, form: str, branch: str) -> str:
    """Returns the folder of a branch as a table for other programs; `form` is a table format (`iceberg`)."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_-.") else _escaped(c) for c in branch)
    return f"{_part(pool_id)}/published/{form}/{plain if plain.strip('.') else plain.replace('.', '~2e')}"


def _escaped(character: str) -> str:
    return "".join(f"~{byte:02x}" for byte in character.encode(errors="surrogatepass"))


def given_up(pool_id: str) -> str:
    """Returns the name of the note that a person gave up this folder, which is not in the list of pools."""
    return f"{_part(pool_id)}/given-up"


def parked_folder(pool_id: str) -> str:
    """Returns the folder of a pool's parked files."""
    return f"{_part(pool_id)}/parked"


def parked(pool_id: str, digest: str) -> str:
    """Returns the name of the note of a parked file; `digest` is that of the branch and the file's name."""
    return f"{_part(pool_id)}/parked/{_part(digest)}.json"


MAIN = "main"
"""The branch that a new pool has, and the default if no branch is named."""

JOBS = "$jobs"
"""The pool of the jobs of agents."""

OWN_POOLS = (JOBS,)
"""Pools that the lake makes itself."""


def split_pool(name: str) -> tuple[str, str]:
    """Splits a name into pool and sub-pool: `logs.$nokey` into `logs` and `$nokey`, `logs` into `logs` and ""."""
    for sub_pool in SUB_POOLS:
        if name.endswith("." + sub_pool):
            return name[: -len(sub_pool) - 1], sub_pool
    return name, ""


def is_own(name: str) -> bool:
    """Whether the name is that of a pool that the lake makes itself, or of a sub-pool of one."""
    return split_pool(name)[0] in OWN_POOLS


def check_pool_name(name: str) -> str:
    """Returns the name. Raises InvalidInput if no pool may have it.

    It must not be empty, have more than 255 characters, or one that `POOL@REVISION`, `POOL:META` or the
    sub-pools need. The lake's own pools have such a character.
    """
    return name if name in OWN_POOLS else _checked(name, "pool")


def check_branch_name(name: str, *, what: str = "branch") -> str:
    """Returns the name.  Raises InvalidInput if no branch and no tag may have it.  The rules are those of
    pools; it must not look like another revision either (a version, a transaction id)."""
    _checked(name, what)
    if name.isascii() and name.isdigit():
        raise InvalidInput(f"{what} name {name!r}: only digits are a version; add a letter")
    if is_id(name):
        raise InvalidInput(f"{what} name {name!r}: reads as a transaction id; choose another one")
    return name


def check_chosen_name(name: str, *, what: str) -> str:
    """Returns the new name of a pool, branch or tag. Raises InvalidInput if the command would take it for an
    option.

    Called only where a user chooses a name, so a stored name that begins with `-` stays readable. The names of
    the lake's own pools are refused too.
    """
    if what == "pool" and name in OWN_POOLS:
        raise InvalidInput(f"pool name {name!r}: the lake makes this pool itself; choose another name")
    if transaction_of(name):
        raise InvalidInput(
            f"{what} name {name!r}: it belongs to a transaction over pools; choose another name"
        )
    if clone_of(name):
        raise InvalidInput(f"{what} name {name!r}: it belongs to a clone of the pool; choose another name")
    if name.startswith("-"):
        raise InvalidInput(f"{what} name {name!r}: the command takes it for an option; begin it otherwise")
    return name


def deleted_branch(branch: str, version: int) -> str:
    """Returns the name of the tag that keeps a deleted branch at a version; no user's tag has an `@`."""
    return f"{branch}@{version}"


def _checked(name: str, what: str) -> str:
    if not name or len(name) > 255:
        raise InvalidInput(f"{what} name {name!r}: a name has 1 to 255 characters (got {len(name)})")
    bad = sorted({c for c in name if c in "@:$/\\\"'" or c.isspace() or not c.isprintable()})
    if bad:
        raise InvalidInput(
            f"{what} name {name!r}: a name cannot have {' '.join(map(repr, bad))}; leave them out"
        )
    return name
