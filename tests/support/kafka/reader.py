"""A reader of topics as a process, to be killed or stopped: python -m tests.support.kafka.reader --role ROLE URI
POOL

reader   loads what there is, again and again, until it is killed
zombie   reads one batch, stops itself (SIGSTOP) before it commits, and once it goes on, loads the rest and ends
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Sequence

from lake_core.errors import LakeError
from log_lake.kafka.broker import Broker
from log_lake.kafka.load import load_topics
from log_lake.kafka.plan import Span
from log_lake.kafka.source import kafka_source
from log_lake.lake import Lake


class Zombie(Broker):
    """Brokers that stop the process once, after a batch is read and before it is committed."""

    stopped = False

    def check_same(self, spans: Sequence[Span]) -> None:
        if not self.stopped:
            self.stopped = True
            os.kill(os.getpid(), signal.SIGSTOP)
        super().check_same(spans)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--role", choices=("reader", "zombie"), required=True)
    parser.add_argument("uri")
    parser.add_argument("pool")
    args = parser.parse_args()
    pool = Lake.open(args.uri).pool(args.pool)
    source = kafka_source(pool.settings["ingest.source"])
    if args.role == "zombie":
        done = load_topics(pool, Zombie(source))
        print(done.lost, flush=True)
        return
    while True:  # until it is killed
        try:
            load_topics(pool, Broker(source))
        except LakeError as error:
            if not error.may_pass:
                raise


if __name__ == "__main__":
    main()
