"""`lake offsets`: the offsets from which a pool continues to read its topics of Kafka, and how a person sets
them."""

from __future__ import annotations

from argparse import Namespace

from lake_core.errors import InvalidInput
from lake_core.phrases import counted
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_rows, say
from log_lake.kafka.broker import Broker
from log_lake.kafka.positions import positions_of, set_positions, settled, wish_of
from log_lake.kafka.source import is_kafka, kafka_source


def offsets(args: Namespace) -> None:
    """Print the offsets that the journal holds, or set some."""
    lake = open_lake(args)
    pool = lake.pool(args.pool)
    wishes = [wish_of(text) for text in args.set]
    if not wishes:
        rows = [
            {
                "topic": one.partition.topic,
                "partition": one.partition.number,
                "next": one.next,
                "last load from": one.begun,
                "topic id": one.partition.topic_id,
                "cluster": one.partition.cluster,
            }
            for one in positions_of(pool)
        ]
        print_rows(rows, as_json=args.json, empty=f"{args.pool}: its journal holds no offsets")
        return
    source = pool.settings["ingest.source"]
    if not is_kafka(source):
        raise InvalidInput(f"pool {args.pool!r}: its ingest.source names no topics of Kafka")
    seen = Broker(kafka_source(source), lake.clients).look()
    chosen = settled(wishes, seen)
    version = set_positions(pool, seen, chosen)
    if args.json:
        set_to = [{"topic": p.topic, "partition": p.number, "next": at} for p, at in sorted(chosen.items())]
        print_json({"pool": args.pool, "version": version, "set": set_to})
    elif version is None:
        say(f"{args.pool}: nothing changed: it goes on there already")
    else:
        say(f"{args.pool}: version {version:,} sets the offsets of {counted(len(chosen), 'partition')}")
