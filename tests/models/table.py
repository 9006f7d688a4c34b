"""The models, their scenes, their invariants, and the rules whose breach Spin finds.

A scene says how many of each process take part.  Callers: `spin`, `test_models`, `__main__`.
"""

from __future__ import annotations

from dataclasses import dataclass

Scene = str
"""Words such as `WRITERS=2`."""


@dataclass(frozen=True)
class Invariant:
    """An invariant in words, and how Spin prints its assertion."""

    says: str
    printed: str


@dataclass(frozen=True)
class Breach:
    """A rule that is broken, a scene in which that shows, and the part of the assertion that Spin then prints."""

    rule: str
    scene: Scene
    violates: str


@dataclass(frozen=True)
class Model:
    """`right`: scenes that hold if no rule is broken.  `stands_for`: what inlines and processes model."""

    right: tuple[Scene, ...]
    invariants: tuple[Invariant, ...]
    breaches: tuple[Breach, ...]
    stands_for: tuple[tuple[str, str], ...]


def _journal(writers: int, readers: int, purgers: int, begun: int) -> Scene:
    return f"WRITERS={writers} READERS={readers} PURGERS={purgers} BEGUN={begun}"


def _group(writers: int, *, sources: bool = False, loose: bool = False) -> Scene:
    return f"WRITERS={writers} SOURCES={int(sources)} LOOSE={int(loose)}"


_ONCE, _IN_PLACE, _SOUND = "history[1]!=", "entry[i]==history[i]", "(i<=3)"
_FOLD, _ACKNOWLEDGED, _RESTS = "version<=last", "history[1]==me", "checkpoint[floor]"

_JOURNAL = Model(
    right=(_journal(2, 0, 1, 0), _journal(1, 0, 2, 0), _journal(0, 1, 2, 2), _journal(1, 1, 1, 1)),
    invariants=(
        Invariant("a change is in the history at most once", _ONCE),
        Invariant("the entries above the newest fence are those of the history", _IN_PLACE),
        Invariant("a checkpoint is at the newest fence or above it", _SOUND),
        Invariant("a loaded state is a fold of the history, no older than the begin of the load", _FOLD),
        Invariant("an acknowledged change is in the history", _ACKNOWLEDGED),
        Invariant("while the next gate is missing, the checkpoint that a state rests on is there", _RESTS),
    ),
    breaches=(
        Breach("ACK_WITHOUT_FENCE", _journal(2, 0, 1, 0), _ACKNOWLEDGED),
        Breach("READ_WITHOUT_FENCE", _journal(0, 1, 1, 1), _FOLD),
        Breach("FENCE_AFTER_DELETE", _journal(0, 0, 1, 1), _IN_PLACE),
        Breach("GATE_AFTER_DELETE", _journal(2, 0, 1, 0), _ACKNOWLEDGED),
        Breach("GATE_BEFORE_FENCE", _journal(0, 1, 1, 2), _RESTS),
        Breach("NO_CHECKPOINT", _journal(0, 0, 1, 1), _SOUND),
        Breach("NEXT_IF_SILENT", _journal(2, 0, 0, 0), _ONCE),
        Breach("EXISTS_IS_OURS", _journal(2, 0, 0, 0), _ACKNOWLEDGED),
        Breach("FORGET_OUTCOME", _journal(1, 0, 1, 0), _ONCE),
        Breach("COUNT_AFTER_LIST", _journal(2, 0, 1, 0), _ACKNOWLEDGED),
        Breach("GATE_READ_FIRST", _journal(1, 1, 1, 1), _FOLD),
        Breach("DELETE_ABOVE", _journal(1, 0, 1, 1), _IN_PLACE),
        Breach("KEEP_STATE", _journal(2, 0, 1, 0), _ONCE),
    ),
    stands_for=(
        ("create", "lake_core.store:Store.create"),
        ("walk", "lake_core.journal.reader:JournalReader._walk"),
        ("load", "lake_core.journal.reader:JournalReader._start"),
        ("follow", "lake_core.journal.reader:JournalReader._follow"),
        ("look", "lake_core.journal.reader:JournalReader._look"),
        ("put_gate", "lake_core.journal.purge:put_gate"),
        ("Writer", "lake_core.journal.journal:Journal.append"),
        ("Reader", "lake_core.journal.reader:JournalReader.load"),
        ("Purger", "lake_core.journal.purge:purge"),
    ),
)

_EACH_ONCE, _FINAL, _TRUE = "!((all&taken))", "!((denied&taken))", "!((all&(1<<(me-1))))"

_GROUP_COMMIT = Model(
    right=(
        _group(2),
        _group(2, sources=True),
        _group(2, sources=True, loose=True),
        _group(1, loose=True),
    ),
    invariants=(
        Invariant("a draft is in the history at most once, whoever commits it", _EACH_ONCE),
        Invariant("nobody commits a draft after its writer reported that it is not committed", _FINAL),
        Invariant("a writer that reports no commit has none", _TRUE),
    ),
    breaches=(
        Breach("COMMIT_KNOWN", _group(2), _EACH_ONCE),
        Breach("COMMIT_EXPIRED", _group(2), _EACH_ONCE),
        Breach("FORGET_OWN", _group(2, sources=True), _TRUE),
        Breach("GIVE_UP_SURELY", _group(2), _FINAL),
        Breach("COMMIT_REFUSED", _group(2, sources=True), _FINAL),
        Breach("SINCE_NOW", _group(2), _EACH_ONCE),
        Breach("NO_SEARCH", _group(2), _EACH_ONCE),
        Breach("COMMIT_GIVEN", _group(2, sources=True, loose=True), _FINAL),
        Breach("COMMIT_RESTORED", _group(1, loose=True), _FINAL),
    ),
    stands_for=(
        ("know", "lake_core.journal.recent:Recent.version_of"),
        ("collect", "lake_core.history.group_commit.attempt:Attempt._collect_requests"),
        ("put", "lake_core.journal.journal:Journal.append"),
        ("deny", "lake_core.history.group_commit.attempt:Attempt.fail"),
        ("Writer", "lake_core.history.group_commit.attempt:Attempt.propose"),
        ("Combiner", "lake_core.history.group_commit.attempt:Attempt._collect_requests"),
    ),
)

_OWNERS, _SINGLE, _READER, _MOMENT, _UPKEEP = 1, 2, 4, 8, 16


def _transactions(*parts: int) -> Scene:
    return f"SCENE={sum(parts)}"


_DECIDED, _TOLD, _NOT_BEFORE = "answer==truth[t]", "==(truth[t]==1)", "||(truth[1]==1))"
_FRESH, _AT_ONCE, _NOT_STUCK = "|| !(begun))", "zero==one", "pool[0].is[1]!=1"
_ALL, _ORDER = "pool[0].is[1]==2)==(pool", "single==0"

_TRANSACTIONS = Model(
    right=(
        _transactions(_OWNERS),
        _transactions(_SINGLE, _READER),
        _transactions(_MOMENT, _UPKEEP),
        _transactions(_READER, _UPKEEP),
    ),
    invariants=(
        Invariant("no pool settles otherwise than the first decision says", _DECIDED),
        Invariant("an owner's report is the decision", _TOLD),
        Invariant("no reader of one pool shows a transaction before its decision", _NOT_BEFORE),
        Invariant(
            "a reader of one pool shows each transaction that was acknowledged before it began", _FRESH
        ),
        Invariant("a reader of both pools shows all of a transaction or none, decided and fresh", _AT_ONCE),
        Invariant("when nobody can go on, no pool holds an undecided transaction", _NOT_STUCK),
        Invariant("in the end a transaction is in all of its pools or in none", _ALL),
        Invariant("of two writes that conflict, the journal keeps the order that a reader has seen", _ORDER),
    ),
    breaches=(
        Breach("DECISION_OVERWRITES", _transactions(), _DECIDED),
        Breach("DECIDE_EARLY", _transactions(), _ALL),
        Breach("BELIEVE_OWN", _transactions(), _DECIDED),
        Breach("ABSENT_IS_ABORT", _transactions(), _DECIDED),
        Breach("PASS_UNDECIDED", _transactions(_SINGLE, _READER), _ORDER),
        Breach("NO_VECTOR", _transactions(_MOMENT), _AT_ONCE),
        Breach("NOT_AGAIN", _transactions(_MOMENT), _AT_ONCE),
        Breach("DELETE_EARLY", _transactions(_UPKEEP), _DECIDED),
        Breach("WAIT_UNORDERED", _transactions(_OWNERS), _NOT_STUCK),
        Breach("SHOW_PENDING", _transactions(_READER), _NOT_BEFORE),
        Breach("ACK_AT_DECISION", _transactions(_UPKEEP), _TOLD),
        Breach("CLOSE_HELD_ONLY", _transactions(_UPKEEP), _DECIDED),
        Breach("READ_NO_DECISION", _transactions(_READER), _FRESH),
        Breach("NO_GRACE", _transactions(_READER, _UPKEEP), _NOT_BEFORE),
    ),
    stands_for=(
        ("decide", "lake_core.history.transactions.decisions:Decisions.decide"),
        ("settle", "lake_core.history.history:History.settle"),
        ("Owner", "log_lake.lake.transactions:PoolsTransaction.commit"),
        ("Settler", "lake_core.history.history:History._resolve"),
        ("Upkeep", "log_lake.lake.open_transactions:clean"),
        ("Single", "lake_core.history.transactions.commuting:undecided"),
        ("Reader", "lake_core.history.history:History.load_open"),
        ("Moment", "log_lake.lake.moment:states_at_one_moment"),
    ),
)

MODELS = {"journal": _JOURNAL, "group_commit": _GROUP_COMMIT, "transactions": _TRANSACTIONS}
"""By the name of the file, without `.pml`."""
