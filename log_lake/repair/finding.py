"""A finding of `lake fsck`: what is wrong, where, and what to do about it; and the list of all kinds.

Damage means that records cannot be read, that readers may get a false answer, or that an object of the lake
cannot be trusted.  A leftover takes room or a few more requests; nothing depends on it.  An object is unseen if
the store did not give it; it may be sound (decision 491).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lake_core.naming import MAIN

DAMAGE, LEFTOVER, UNSEEN = "damage", "leftover", "unseen"


class Kind(msgspec.Struct, frozen=True):
    """A kind of finding: its severity, and what to do about it.  In that text `{pool}` stands for the pool's name,
    `{id}` for the object's id."""

    severity: str
    do: str


_REPAIR = "lake repair {pool} --object {id}"
_BACKUP = "put the object back from a backup; without one: lake rebuild {pool} --name NEW"
_TAKE_OUT = "put the object back from a backup; without one: " + _REPAIR

KINDS: dict[str, Kind] = {
    "entry_missing": Kind(DAMAGE, "stop the writers; " + _BACKUP),
    "entry_damaged": Kind(DAMAGE, "stop the writers; " + _BACKUP),
    "entry_replaced": Kind(
        DAMAGE,
        "stop the writers; put the entry that was here before back from a backup, in place of this one, and load "
        "again what this one loaded; without one: lake rebuild {pool} --name NEW",
    ),
    "no_state": Kind(DAMAGE, _BACKUP),
    "journal_lost": Kind(
        DAMAGE,
        "stop the writers; put the journal back from a backup; without one: lake rebuild {pool}; if it has "
        "no data object: lake drop {pool} --yes",
    ),
    "pools_lost": Kind(
        DAMAGE,
        "stop the writers; put the list of pools back from a backup; without one: lake rebuild ID --name NAME of "
        "each folder of a pool begins it anew; if none has a data object: delete pools-begun",
    ),
    "journal_missing": Kind(
        DAMAGE,
        "stop the writers; put the journal back from a backup; without one: lake rebuild {pool}; if no load of the "
        "pool ever succeeded: load again, or drop it",
    ),
    "tail_may_be_lost": Kind(
        DAMAGE,
        "compare lake log {pool} with what was loaded; if a load is missing: stop the writers, put its entries "
        "back from a backup, or run lake rebuild {pool} --name NEW; otherwise the next load ends this",
    ),
    "checkpoint_damaged": Kind(DAMAGE, "readers pass it over; write another one: lake checkpoint {pool}"),
    "checkpoint_differs": Kind(
        DAMAGE, "delete this object, if the entries from an older checkpoint on are all there"
    ),
    "checkpoint_lies": Kind(DAMAGE, "delete this object, if there is another checkpoint or no fence"),
    "fence_lies": Kind(DAMAGE, "delete the fence, if the entries below it are there; otherwise: " + _BACKUP),
    "hint_beyond_end": Kind(DAMAGE, "look for the entries in a backup; the next writers write the hint anew"),
    "schema_lies": Kind(DAMAGE, _BACKUP),
    "tag_dangling": Kind(DAMAGE, "delete the tag: lake tag {pool} -d NAME"),
    "totals_lie": Kind(DAMAGE, "delete the newest checkpoint, if the entries below it are there"),
    "object_missing": Kind(DAMAGE, _TAKE_OUT),
    "object_unreadable": Kind(UNSEEN, "try again; if the store cannot give it: " + _TAKE_OUT),
    "unread": Kind(UNSEEN, "run lake fsck again"),
    "object_damaged": Kind(DAMAGE, _TAKE_OUT),
    "reference_outside": Kind(DAMAGE, _TAKE_OUT),
    "content_lies": Kind(
        DAMAGE,
        "the object holds other records than were written; " + _TAKE_OUT,
    ),
    "statistics_lie": Kind(DAMAGE, "lake rebuild {pool} --name NEW reads them from the objects"),
    "pool_unlisted": Kind(
        DAMAGE,
        "put the list of pools back from a backup; without one: lake rebuild {id} --name NAME; if it is not "
        "needed: lake drop {id} --yes",
    ),
    "in_flight": Kind(
        LEFTOVER, "if no load is under way: lake fsck {pool} --older-than 0s; what it then finds is damage"
    ),
    "pool_in_flight": Kind(
        LEFTOVER,
        "wait until lake rekey has ended; if none is under way: lake drop {id} --yes",
    ),
    "clone_unlisted": Kind(
        LEFTOVER, "wait until lake clone has ended; otherwise the agent retention ends it after vacuum.grace"
    ),
    "clone_hold_left": Kind(
        LEFTOVER,
        "wait until lake clone has ended; otherwise the agent retention deletes the tag after vacuum.grace",
    ),
    "object_before_journal": Kind(
        LEFTOVER,
        "compare with lake rebuild {pool} --name NEW --dry-run; if no record is missing: delete the object, or "
        "leave it to the vacuum after the next lake purge {pool}",
    ),
    "object_unreferenced": Kind(
        LEFTOVER, "leave it to the vacuum; if it stays: lake vacuum {pool} --every-name"
    ),
    "object_unknown": Kind(LEFTOVER, "move it out of the lake"),
    "index_damaged": Kind(
        LEFTOVER, "delete it: no answer depends on it; lake index make {pool} makes another one"
    ),
    "entry_leftover": Kind(LEFTOVER, "the next lake purge {pool} deletes it"),
    "request_leaked": Kind(LEFTOVER, "a later commit deletes it if it is readable; otherwise delete it"),
    "lease_unreadable": Kind(LEFTOVER, "it keeps every object until it is a day old; then delete it"),
    "receipt_missing": Kind(
        DAMAGE,
        "put the receipt back from a backup, or from the copy that lake erase -o wrote; without one: erase the "
        "records again",
    ),
    "receipt_unreadable": Kind(
        DAMAGE,
        "put the receipt back from a backup, or from the copy that lake erase -o wrote; without one: delete it, "
        "and erase the records again",
    ),
    "plan_unreadable": Kind(LEFTOVER, "delete it; make another one with: lake vacuum {pool} --dry-run"),
    "drop_interrupted": Kind(
        LEFTOVER, "finish the drop: lake drop {pool} --yes; or take the pool back: lake restore {pool}"
    ),
    "hint_unreadable": Kind(LEFTOVER, "nothing: readers ask more often until a writer replaces it"),
    "rebuild_interrupted": Kind(
        LEFTOVER, "run lake rebuild, or lake clone --to, again; then: lake drop {id} --yes"
    ),
    "folder_given_up": Kind(LEFTOVER, "delete the folder, if nothing in it is needed"),
    "pool_dropped": Kind(
        LEFTOVER, "lake restore takes it back; lake vacuum --dropped deletes it once its grace time is over"
    ),
    "unchecked": Kind(LEFTOVER, "mend the other findings, then run lake fsck again"),
}
"""Every kind of finding, by name."""


class Finding(msgspec.Struct, frozen=True):
    """One fault: its kind, the pool's name, the name of the object on the store, what is wrong, what to do."""

    kind: str
    severity: str
    pool: str
    where: str
    what: str
    do: str


def on_branches(one: Finding, *, id: str, branches: Sequence[str]) -> Finding:
    """Returns the finding about an object, with a command for each branch that refers to it."""
    command = _REPAIR.replace("{pool}", one.pool).replace("{id}", id)
    options = ["" if branch == MAIN else f" --branch {branch}" for branch in branches]
    commands = "; ".join(command + option for option in options)
    return msgspec.structs.replace(one, do=one.do.replace(command, commands)) if branches else one


def finding(kind: str, *, pool: str, where: str, what: str, id: str = "") -> Finding:
    """Returns a finding with the severity and the advice of its kind."""
    of_kind = KINDS[kind]
    text = of_kind.do.replace("{pool}", pool).replace("{id}", id)
    return Finding(kind, of_kind.severity, pool, where, " ".join(what.split()), text)
