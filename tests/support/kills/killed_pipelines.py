"""Kills a pipeline of dlt before one of its changes to the file system, and runs it again.

    python -m tests.support.kills.killed_pipelines FOLDER FIRST STRIDE
    python -m tests.support.kills.killed_pipelines FOLDER ROUNDS          two pipelines at once

A change is a rename, a link, a new folder or a removal, by the lake or by dlt itself. Processes are forked from
one that has imported dlt, because that import takes longer than a run. Prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dlt

from log_lake import Lake
from log_lake.dlt import lake

CHANGES = ("os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")
"""Events of Python's audit hooks; each is raised before the change that it names."""

BEFORE, AFTER = 4, 9
"""How many events the source has in the first run, and in the run that is killed."""

SIZES = {"one": 5, "two": 7}
"""How many events the source has when each of the two pipelines runs."""

KILLED = -signal.SIGKILL


def tags(n: int) -> list[str]:
    return [f"{n}-{i}" for i in range(n % 3)]


@dlt.source(name="shop")
def shop(upto: int) -> Any:
    """A source with events that are appended once, articles that are merged, and a list that is replaced; all have
    nested records."""

    @dlt.resource
    def events(ts: Any = dlt.sources.incremental("ts")) -> Iterator[Any]:  # noqa: B008  # dlt reads the default
        last = -1 if ts.last_value is None else ts.last_value
        yield [{"ts": n, "tags": tags(n)} for n in range(last + 1, upto)]

    @dlt.resource(primary_key="id", write_disposition="merge")
    def articles() -> Iterator[Any]:
        yield [{"id": n, "seen": upto, "tags": tags(n + upto)} for n in range(3)]

    @dlt.resource(write_disposition="replace")
    def listed() -> Iterator[Any]:
        yield [{"id": n, "tags": tags(n)} for n in range(upto)]

    return events, articles, listed


def run(folder: Path, upto: int, *, die_at: int | None = None, name: str = "shop") -> int:
    """Runs the pipeline, and kills the process before its change with this number. Returns the number of
    changes."""
    seen = 0

    def count(event: str, _: object) -> None:
        nonlocal seen
        if event in CHANGES:
            if seen == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

    sys.addaudithook(count)
    pipeline = dlt.pipeline(
        name,
        destination=lake(str(folder / "lake")),
        dataset_name="shop",
        pipelines_dir=str(folder / "pipelines"),
    )
    pipeline.run(shop(upto))
    return seen


def finish(folder: Path, upto: int) -> int:
    """Runs the pipeline until nothing is left to load: the first run only completes what an earlier one began, and
    extracts nothing."""
    for _ in range(2):
        run(folder, upto)
    return 0


def found(folder: Path) -> dict[str, Any]:
    """Returns the records of all tables, each with the values of its nested records, and the number of load
    packages."""
    pools = Lake.open(str(folder / "lake"))

    def rows(pool: str) -> list[dict[str, Any]]:
        view = pools.pool(f"shop.{pool}").at()
        return view.to_table().to_pylist() if view.references else []

    answer: dict[str, Any] = {}
    for table, name in (("events", "ts"), ("articles", "id"), ("listed", "id")):
        nested = sorted(rows(f"{table}__tags"), key=lambda row: (row["_dlt_parent_id"], row["_dlt_list_idx"]))
        answer[table] = sorted(
            (
                row[name],
                row.get("seen"),
                [one["value"] for one in nested if one["_dlt_parent_id"] == row["_dlt_id"]],
            )
            for row in rows(table)
        )
        answer[f"{table} nested"] = len(nested)
    answer["packages"] = len(rows("_dlt_loads"))
    return answer


def fork(work: Callable[[], Any], answer: Path | None = None) -> int:
    """Starts a process that does the work, and leaves its result as JSON."""
    child = os.fork()
    if not child:
        status = 1
        try:
            result = json.dumps(work())
            if answer is not None:
                answer.write_text(result)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def ended(child: int) -> int:
    """Waits until a process has ended. Returns its status."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def in_child(work: Callable[[], Any], answer: Path) -> int:
    """Does the work in a process of its own. Returns the process's status."""
    return ended(fork(work, answer))


def expected(upto: int) -> dict[str, Any]:
    """Returns the records that the source has after a run."""
    events = [(n, None, tags(n)) for n in range(upto)]
    articles = [(n, upto, tags(n + upto)) for n in range(3)]
    return {"events": events, "articles": articles, "listed": events}


def differences(folder: Path, answer: Path, upto: int) -> str:
    """Returns what only the lake or only the source has; "" if both have the same."""
    if status := in_child(lambda: found(folder), answer):
        return f"the lake could not be read: {status}"
    have = json.loads(answer.read_text())
    for table, rows in json.loads(json.dumps(expected(upto))).items():
        if have[table] != rows:
            return f"{table}: {have[table]}, expected {rows}"
        if have[f"{table} nested"] != sum(len(row[2]) for row in rows):
            return f"{table}: {have[f'{table} nested']} nested records"
    return ""


def race(folder: Path, rounds: int) -> dict[str, Any]:
    """Loads into the same tables by two pipelines at once, several times; each loads other records."""
    answer, wrong = folder / "answer.json", []
    folder.mkdir(parents=True)
    for number in range(rounds):
        here = folder / f"round{number}"
        here.mkdir()
        children = [fork(partial(run, here, upto, name=name)) for name, upto in SIZES.items()]
        if any(ended(child) for child in children):
            wrong.append(f"round {number}: a pipeline failed")
            continue
        assert not in_child(partial(found, here), answer)
        have = json.loads(answer.read_text())
        said = {name: json.loads(json.dumps(expected(upto))) for name, upto in SIZES.items()}
        both = sorted(row for one in said.values() for row in one["events"])
        if have["events"] != both:
            wrong.append(f"round {number}: events: {have['events']}")
        for table in ("articles", "listed"):
            matching = [name for name, one in said.items() if one[table] == have[table]]
            nested = sum(len(row[2]) for row in have[table])
            if len(matching) != 1 or have[f"{table} nested"] != nested:
                wrong.append(
                    f"round {number}: {table}: {have[table]}, {have[f'{table} nested']} nested records"
                )
    return {"rounds": rounds, "wrong": wrong}


def main(folder: Path, first: int, stride: int) -> dict[str, Any]:
    """Kills the run before every `stride`-th change, from the one with the number `first` on."""
    answer, base = folder / "answer.json", folder / "base"
    base.mkdir(parents=True)
    assert not in_child(lambda: run(base, BEFORE), answer)
    counted = folder / "counted"
    shutil.copytree(base, counted)
    assert not in_child(lambda: run(counted, AFTER), answer)
    changes = json.loads(answer.read_text())
    shutil.rmtree(counted)
    killed, wrong = 0, []
    for at in range(first, changes, stride):
        here = folder / f"at{at}"
        shutil.copytree(base, here)
        status = in_child(partial(run, here, AFTER, die_at=at), answer)
        assert status in (0, KILLED), status
        killed += status == KILLED
        if status := in_child(partial(finish, here, AFTER), answer):
            wrong.append(f"killed before change {at}: it could not go on: {status}")
        elif why := differences(here, answer, AFTER):
            wrong.append(f"killed before change {at}: {why}")
        shutil.rmtree(here)
    return {"changes": changes, "killed": killed, "wrong": wrong}


if __name__ == "__main__":
    place, numbers = Path(sys.argv[1]), [int(word) for word in sys.argv[2:]]
    print(json.dumps(main(place, *numbers) if len(numbers) > 1 else race(place, *numbers)))
