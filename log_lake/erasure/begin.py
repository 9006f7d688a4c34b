"""Begins an erasure: checks the records that the user names, and writes the receipt.

From then on any process finds the pending erasure and resumes it (`run.go_on`).  If the same erasure is begun
again, the existing receipt is returned.  Callers: `run.erase`, the first task of the erasure agent.
"""

from __future__ import annotations

import msgspec

from lake_core.errors import InvalidInput
from lake_core.history import PoolState
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from log_lake.erasure import receipt as receipts
from log_lake.erasure.receipt import Receipt
from log_lake.erasure.target import Target, target_of
from log_lake.fields.names import names_at
from log_lake.lake.counting import records_met
from log_lake.lake.pool import Pool
from log_lake.texts.keytext import check_classes
from log_lake.where import parse, show


def begin(
    pool: Pool,
    *,
    key_range: KeyRange = EVERYTHING,
    where: str | None = None,
    keeps_history: bool = False,
) -> Receipt:
    """Returns the receipt of the pending erasure of these records; writes one if there is none.

    Raises InvalidInput (nothing is written), NotFound, Corrupt, Unavailable.
    """
    target = check(pool, key_range=key_range, where=where)
    met = records_met(pool.at(), key_range, where)
    if target.condition is not None and names_at(pool.history.load_open().state, pool.sub_pool):
        where = show(target.condition)  # a receipt has stored names, which no edit changes
    open_receipt = receipts.find_open(pool, target.key_range, where)
    if open_receipt is not None:
        if keeps_history and not open_receipt.keeps_history:
            asked = msgspec.structs.replace(open_receipt, keeps_history=True)
            open_receipt = receipts.united(receipts.read(pool, asked.id), asked)
            receipts.write(pool, open_receipt)
        return open_receipt
    context = pool.context
    receipt = Receipt(
        receipts.FIRST,
        context.ids.new(),
        context.lake_id,
        pool.config.id,
        pool.config.name,
        pool.sub_pool,
        key_range.low,
        key_range.high,
        where,
        context.author,
        pool.history.load_open().version,
        int(context.now() * 1_000_000),
        keeps_history=keeps_history,
        records=met,
    )
    receipts.write(pool, receipt)
    return receipt


def check(pool: Pool, *, key_range: KeyRange, where: str | None) -> Target:
    """Returns the records that an erasure of the newest state would erase.

    Raises InvalidInput if no records are named, if a bound of the range has another type than the key or the
    key's type is not known, if the condition does not fit the pool, or if the lake's format has no vacuum.
    """
    if key_range == EVERYTHING and where is None:
        raise InvalidInput(
            f"erase of pool {pool.name!r}: say which records, by a range of keys or a condition; to erase all, "
            "drop the pool"
        )
    if pool.context.format_version < 2:
        raise InvalidInput(
            f"this lake has format version {pool.context.format_version}, which has no vacuum: run lake upgrade"
        )
    target = target_now(pool, pool.history.load_open().state, key_range=key_range, where=where)
    # a range of texts would not find the numbers that an object holds which no load has committed
    view = pool.at()
    check_classes(key_range, view.key, view.key_classes)
    return target


def target_now(pool: Pool, state: PoolState, *, key_range: KeyRange, where: str | None) -> Target:
    """Returns the records to erase, with the condition checked against the fields of `state`, as readers see them.
    Raises InvalidInput if it does not fit these."""
    names = names_at(state, pool.sub_pool)
    return target_of(
        pool.config, state, sub_pool=pool.sub_pool, key_range=key_range, where=where, names=names
    )


def receipt_target(pool: Pool, state: PoolState, receipt: Receipt) -> Target:
    """Returns the records of a receipt, whose condition has stored names, checked against the fields of `state`.
    Raises InvalidInput."""
    key_range, where = receipt.key_range, receipt.where
    return target_of(pool.config, state, sub_pool=pool.sub_pool, key_range=key_range, where=where)


def asked_of(pool: Pool, receipt: Receipt) -> str | None:
    """Returns the condition of a receipt, which has stored names, as readers name the fields now."""
    names = names_at(pool.history.load_open().state, receipt.sub_pool)
    if receipt.where is None or not names:
        return receipt.where
    return show(names.shown_condition(parse(receipt.where)))
