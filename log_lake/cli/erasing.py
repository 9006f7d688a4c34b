"""Commands that erase records, list erasures and check a receipt."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lake_core.errors import Incomplete, InvalidInput, NotFound
from lake_core.phrases import counted, human_size, human_time, printable
from log_lake.agents.erasure.report import sighting_line
from log_lake.cli.data import span_of
from log_lake.cli.each_pool import EachPool
from log_lake.cli.opening import open_lake
from log_lake.cli.pools import confirm
from log_lake.console.output import print_json, print_rows, say
from log_lake.console.sink import print_text, sink
from log_lake.erasure import receipt as receipts
from log_lake.erasure.begin import asked_of, check
from log_lake.erasure.receipt import PENDING, Receipt
from log_lake.erasure.run import erase, go_on
from log_lake.erasure.sighting import Sighting, look
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.lake.counting import records_met
from log_lake.lake.pool import Pool


def erase_records(args: Namespace) -> None:
    """Erases records, or resumes an erasure.  Raises Incomplete if something still holds matching records."""
    given = [args.key, args.from_, args.to, args.where]
    if args.key is not None and (args.from_ is not None or args.to is not None):
        raise InvalidInput("erase: give either --key, or --from and --to")
    if (args.resume is None) == all(one is None for one in given):
        raise InvalidInput("erase: say which records: --key, --from, --to, --where; or --resume ID alone")
    pool = open_lake(args).pool(args.pool)
    if args.resume is not None:
        receipt = receipts.read(pool, args.resume)
        pool, key_range, where = (
            replace(pool, sub_pool=receipt.sub_pool),
            receipt.key_range,
            asked_of(pool, receipt),
        )
    else:
        key_range, where = span_of(pool.at(), args), args.where
        check(pool, key_range=key_range, where=where)  # before the question
    if args.dry_run:
        sighting = look(pool, key_range=key_range, where=where, grace=args.grace)
        _print_sighting(sighting, args, met=records_met(pool.at(), key_range, where))
        return
    met = records_met(pool.at(), key_range, where)
    how = {"grace": args.grace, "keeps_history": args.keep_history}
    if args.resume is not None:
        confirm(args, f"go on with erasure {receipt.id} in {args.pool}")
        done = go_on(pool, receipt, **how)
    else:
        which = "these records" if met is None else f"these records ({met:,} that readers of main see)"
        confirm(args, f"erase {which} from every object of {args.pool}; this cannot be undone")
        done = erase(pool, key_range=key_range, where=where, **how)
    _report(done, args)


def _report(done: Receipt, args: Namespace) -> None:
    if args.output is not None:
        with sink(args.output, private=True) as file:  # it holds the key or the condition
            file.write(done.encode())
    if args.json:
        print_json(done)
    elif args.output is None:
        print_text("".join(f"{line}\n" for line in receipt_page(done)))
    if done.status == PENDING:
        raise Incomplete(
            f"{args.pool}: erasure {done.id} is pending: {done.statement}: lake erase {args.pool} --resume "
            f"{done.id} --yes"
        )
    for sub_pool, records in done.not_searched.items():
        say(
            f"{args.pool}: {done.pool}.{sub_pool} with {counted(records, 'record')} was not searched; erase there "
            f"with: lake erase '{done.pool}.{sub_pool}' --where ..."
        )
    say(
        f"{args.pool}: erasure {done.id} is done: deleted {counted(len(done.erased), 'object')} "
        f"({human_size(done.size_erased)}), wrote {len(done.written):,} ({human_size(done.size_written)}); "
        f"version {done.version}"
    )


def receipt_page(done: Receipt) -> Iterator[str]:
    """Yields the receipt as a person reads it, one fact per line; `-o FILE` and `--json` have all of it."""
    pool = f"{done.pool}.{done.sub_pool}" if done.sub_pool else done.pool
    facts = {
        "erasure": done.id,
        "pool": pool,
        "status": done.status,
        "asked by": done.author,
        "records": ""
        if done.records is None
        else f"readers of main saw {counted(done.records, 'such record')}",
        "begun": human_time(done.begun / 1e6),
        "ended": human_time(done.ended / 1e6) if done.ended else "",
        "deleted": f"{counted(len(done.erased), 'object')}, {human_size(done.size_erased)}",
        "written": f"{counted(len(done.written), 'object')}, {human_size(done.size_written)}",
        "versions": ", ".join(f"{one.version:,} ({one.what})" for one in done.transactions),
        "journal": f"purged up to version {done.purged:,}" if done.purged else "",
        "statement": done.statement,
        "content": f"main holds {done.content}" if done.content else "",
    }
    for name, text in facts.items():
        if text:
            yield f"{name:10} {printable(text)}"
    for number, one in enumerate(done.held):
        what = one.object or "a writer that may still write one"
        yield f"{'' if number else 'held':10} {printable(what)}, by {printable(one.by)}"
    yield f"{'receipt':10} kept at {done.pool_id}/erasures/{done.id}.json; -o FILE or --json write it whole"


def _print_sighting(sighting: Sighting, args: Namespace, *, met: int | None) -> None:
    if args.json:
        print_json({"pool": args.pool, **vars(sighting), "records": met})
        return
    say(sighting_line(args.pool, sighting, met=met))


def erasures(args: Namespace) -> None:
    """Print the erasures of a pool, or of all pools, oldest first."""
    lake = Lake.open(args.lake)
    rows: list[dict[str, Any]] = []
    each = EachPool()
    if args.pool:
        rows = _erasures_of(lake.pool(args.pool))
    for config in [] if args.pool else lake.pools():
        with each.attempt(config.name):
            rows += _erasures_of(lake.pool(config.name))
    if rows or not each.failures:
        print_rows(rows, as_json=args.json, empty="no erasures")
    each.check()


def _erasures_of(pool: Pool) -> list[dict[str, Any]]:
    return [
        {
            "pool": one.pool,
            "erasure": one.id,
            "status": one.status,
            "begun": human_time(one.begun / 1e6),
            "ended": human_time(one.ended / 1e6) if one.ended else None,
            "author": one.author,
            "erased": len(one.erased),
            "held": len({holder.object for holder in one.held}),
        }
        for one in receipts.read_all(pool)
    ]


def verify_erasure(args: Namespace) -> None:
    """Print what contradicts the receipt; raises Incomplete if something does."""
    try:
        with open(args.receipt, "rb") as file:
            receipt = receipts.decode(file.read(), name=args.receipt)
    except OSError as error:
        raise InvalidInput(
            f"receipt {args.receipt!r}: {error.strerror or error}; name the file that lake erase -o wrote"
        ) from error
    contradictions = list(verify(_pool_of(Lake.open(args.lake), receipt), receipt))
    if args.json:
        print_json({"erasure": receipt.id, "holds": not contradictions, "findings": contradictions})
    else:
        for line in contradictions:
            print_text(printable(line) + "\n")
    if contradictions:
        raise Incomplete(
            f"{receipt.pool}: erasure {receipt.id} does not hold: {counted(len(contradictions), 'finding')}; erase "
            "the records again"
        )
    say(f"{receipt.pool}: erasure {receipt.id} holds: no object in reach holds such a record")


def _pool_of(lake: Lake, receipt: Receipt) -> Pool:
    """Returns the receipt's pool, whatever its name is now."""
    for config in lake.pools():
        if config.id == receipt.pool_id:
            return lake.pool(config.name)
    raise NotFound(
        f"pool {receipt.pool!r} ({receipt.pool_id}) is not in this lake: name the lake of the receipt "
        f"({receipt.lake}); if the pool was dropped, its objects may still be on the store"
    )
