"""Runs commands on a store that loses answers, and kills them in the middle of a request; a plain model says what
must be there.

    python -m tests.support.servers.on_ceph python -m tests.support.kills.lost_answers {uri} --kills 200

Each round runs one `lake` command as a process of its own, through a proxy that loses requests and answers.
Most are killed, at a write or at any request, which is drawn at random. In one round of three, another command
maintains the pool at the same time. Then the log must show whether the command was committed, at most once.
Every branch must hold what the model says: with the change or without it, and the same from then on. If a
command was not killed, its exit status must be true. Afterwards a command with a token, an erasure and upkeep
are repeated, as the documentation says.

No command may take longer than `LONGEST` seconds. In the end every pool must be whole, every erasure done,
every receipt true to the bytes on the server, and `lake fsck` must know all that the bucket holds.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.support.command import Command
from tests.support.kills.lost_answers.model import Change, Delete, Load, Model, Record, Step
from tests.support.kills.lost_answers.processes import Commands, Ended, Running
from tests.support.kills.lost_answers.readers import KEYS, Readers, Report, span
from tests.support.kills.lost_answers.trouble import Trouble

LONGEST = 600.0
"""The most seconds of a command. An erasure makes 150 requests, and a busy machine answers about one in a
second."""
TIMEOUT = "20s"
DONE, CONFLICT, UNKNOWN, UNAVAILABLE, PENDING = 0, 5, 6, 7, 11
REFUSED = (3, CONFLICT, 9)
"""Exit statuses that mean that nothing was committed: not found, a conflict, invalid."""
PHASES = ("before", "after", "after", "late")
REPEATS = 12
"""How often a command is repeated that fails because of the proxy."""


class Drill:
    """The pools, their models, and the processes that work on them."""

    def __init__(
        self, uri: str, folder: Path, chance: random.Random, trouble: Trouble, environ: dict[str, str]
    ) -> None:
        self.uri, self.folder, self.chance, self.trouble = uri, folder, chance, trouble
        self.commands = Commands(folder, {**environ, "LAKE_STORE_TIMEOUT": TIMEOUT})
        self.lake = Command(uri, folder)
        self.report = Report()
        self.models = {"a": Model("append"), "u": Model("upsert"), "i": Model("append")}
        self.readers = Readers(self.lake, self.models, chance, self.report, scan=self.scan)
        self.loaded: dict[str, list[Record]] = {pool: [] for pool in self.models}
        """All records that were ever given to a load, committed or not."""
        self._numbers = 0

    # ---------------------------------------------------------------- processes

    def start(self, *words: str) -> Running:
        """Starts one command as a process, through the proxy."""
        return self.commands.start(words[0], "--lake", self.uri, *words[1:])

    def end(self, running: Running) -> Ended:
        """Waits until it has ended. Returns how. Raises AssertionError if it does not end, or ends as no command
        may."""
        ended = running.end(longest=LONGEST)
        self.report.longest = max(self.report.longest, ended.seconds)
        self.report.statuses[f"{ended.words[0]} {ended.status}"] += 1
        allowed = (None, DONE, UNKNOWN, UNAVAILABLE, PENDING, *REFUSED)
        assert ended.status in allowed, ended
        assert "Traceback" not in ended.err, ended
        return ended

    def run(self, *words: str, kill: bool = False, companion: tuple[str, ...] = ()) -> Ended:
        """Runs one command, and kills it at a request if it makes that many; the companion runs at the same
        time."""
        running = self.start(*words)
        beside = self.start(*companion) if companion else None
        if kill:
            # a companion's requests count as well: the kill then falls between two requests
            only_writes = self.chance.random() < 0.7
            most = self.writes_of(words[0]) if only_writes else self.requests_of(words[0])
            number = 1 + int(self.chance.random() ** 1.5 * most)
            self.trouble.kill_at(number, running.kill, self.chance.choice(PHASES), only_writes=only_writes)
        ended = self.end(running)
        if beside is not None:
            self.end(beside)
        self.trouble.forget_kill()
        self.trouble.wait_until_idle()
        if ended.status is None:
            self.report.kills += 1
            self.report.killed[words[0]] += 1
        return ended

    def writes_of(self, command: str) -> int:
        """About how many of its requests change something; there may be many more reads, one for each entry."""
        return {"erase": 16, "vacuum": 8, "compact": 7, "tombstones": 6, "purge": 5}.get(command, 4)

    def requests_of(self, command: str) -> int:
        """About how many requests such a command makes if the journal is short."""
        return {"erase": 80, "vacuum": 40, "compact": 30, "tombstones": 30, "purge": 25}.get(command, 18)

    def scan(self, pool: str, branch: str) -> list[Record]:
        """Returns the records that the command prints, through the proxy."""
        ended = self.insist("scan", pool, "--at", branch, "--format", "json")
        return [json.loads(line) for line in ended.out.splitlines()]

    def insist(self, *words: str, until: tuple[int, ...] = (DONE,)) -> Ended:
        """Repeats the command until it succeeds. Raises AssertionError if it never does."""
        said = []
        for _ in range(REPEATS):
            ended = self.run(*words)
            if ended.status in until:
                return ended
            assert ended.status in (UNKNOWN, UNAVAILABLE, CONFLICT, PENDING), f"{words}: {ended}"
            said.append(ended.err.strip())
        raise AssertionError(f"{words} is not done after {REPEATS} times: {said}")

    # ---------------------------------------------------------------- what is drawn

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def records(self, pool: str) -> tuple[str, list[Record]]:
        """Makes records with new ids, and a file with them."""
        records = []
        for _ in range(self.chance.randint(1, 6)):
            id_ = self.number()
            record: Record = {"k": self.chance.randrange(KEYS), "id": id_, "g": self.chance.randrange(4)}
            record["v"] = f"mark-{id_}-{self.chance.getrandbits(64):016x}"
            if pool == "u" and self.chance.random() < 0.15:
                record["_deleted"] = True
            records.append(record)
        if pool == "u":
            records = list({record["k"]: record for record in records}.values())
        self.loaded[pool] += records
        return self.lake.file(f"{self.number()}.ndjson", records), records

    # ---------------------------------------------------------------- rounds

    def round(self) -> None:
        """Runs one command, killed or not, and checks the result."""
        pool = self.chance.choice("aaauii")
        branch = self.chance.choice(list(self.models[pool].lines))
        kill = self.chance.random() < 0.85
        kinds = {
            self.load: 6,
            self.delete: 4,
            self.replace: 3,
            self.revert: 4,
            self.merge: 3,
            self.upkeep: 7,
            self.make_branch: 2,
            self.delete_branch: 2,
            self.restore_branch: 1,
            self.tag: 1,
            self.split: 2,
            self.erase: 2,
        }
        (kind,) = self.chance.choices(list(kinds), list(kinds.values()))
        kind(pool, branch, kill)
        self.readers.compare(pool)

    def companion(self, pool: str, branch: str) -> tuple[str, ...]:
        """Returns a command that maintains the pool meanwhile."""
        if self.chance.random() < 0.7:
            return ()
        return self.chance.choice(self._keeping(pool, branch))

    def _keeping(self, pool: str, branch: str) -> list[tuple[str, ...]]:
        return [
            ("compact", pool, "--branch", branch, "--strategy", "full"),
            ("compact", pool, "--branch", branch),
            ("tombstones", pool, "--branch", branch, "--at-once"),
            ("vacuum", pool, "--grace", "0s"),
            ("vacuum", pool, "--grace", "0s", "--every-name"),
            ("checkpoint", pool),
        ]

    def load(self, pool: str, branch: str, kill: bool) -> None:
        file, records = self.records(pool)
        bulk = ("--bulk",) if self.chance.random() < 0.25 else ()
        self.write(pool, branch, kill, [Load(records)], "load", pool, file, *bulk)

    def delete(self, pool: str, branch: str, kill: bool) -> None:
        low, high = span(self.chance)
        words = ["delete", pool, "--from", str(low), "--to", str(high)]
        group = self.chance.randrange(4) if pool != "u" and self.chance.random() < 0.5 else None
        if group is not None:
            words += ["--where", f"g = {group}"]
        self.write(pool, branch, kill, [Delete(low, high, group)], *words)

    def replace(self, pool: str, branch: str, kill: bool) -> None:
        file, records = self.records(pool)
        low = min(record["k"] for record in records)
        high = max(record["k"] for record in records) + 1
        steps: list[Step] = [Delete(low, high), Load(records)]
        words = ("replace", pool, file, "--from", str(low), "--to", str(high))
        self.write(pool, branch, kill, steps, *words)

    def write(self, pool: str, branch: str, kill: bool, steps: list[Step], *words: str) -> None:
        """Changes a branch, in half of the cases with a token; repeats the command if its outcome is open."""
        op = f"op-{self.number()}"
        token = ("--token", op) if self.chance.random() < 0.5 else ()
        given = (*words, "--branch", branch, "--meta", f"op={op}", *token)
        change = Change(op, steps)
        ended = self.run(*given, kill=kill, companion=self.companion(pool, branch))
        self.settle(pool, branch, change, ended)
        if token and ended.status in (None, UNKNOWN, UNAVAILABLE):
            again = self.insist(*given)
            if not change.version:
                self.settle(pool, branch, change, again)
            once = [change.version] if change.version else []  # a delete of nothing commits nothing
            assert self.committed(pool, op) == once, f"{op}: committed twice"

    def settle(self, pool: str, branch: str, change: Change, ended: Ended) -> None:
        """Finds in the log whether the change was committed; the exit status must agree with it."""
        versions = self.committed(pool, change.op)
        assert len(versions) <= 1, f"{change.op} is committed at {versions}"
        said = f"{change.op}: status {ended.status}, in the log at {versions}: {ended.err}"
        model = self.models[pool]
        if not versions:
            nothing = ended.status == DONE and model.content(branch) == model.content(branch, also=change)
            assert ended.status != DONE or nothing, said
            return
        assert ended.status in (None, DONE, UNKNOWN), said
        self.report.committed_though_killed += ended.status is None
        model.apply(branch, change, versions[0])

    def committed(self, pool: str, op: str) -> list[int]:
        """Returns the versions at which the log has the change."""
        log = self.lake("log", pool, "--json").records
        return [entry["version"] for entry in log if entry["metadata"].get("op") == op]

    def revert(self, pool: str, branch: str, kill: bool) -> None:
        line = self.models[pool].lines[branch]
        known = {entry["version"] for entry in self.lake("log", pool, "--json").records}
        targets = [c for c in line.changes if c.version in known and not c.merged]
        if not targets:
            return
        target = self.chance.choice(targets[-6:])
        op = f"op-{self.number()}"
        given = ("revert", pool, str(target.version), "--branch", branch, "--meta", f"op={op}")
        ended = self.run(*given, kill=kill, companion=self.companion(pool, branch))
        self.settle(pool, branch, Change(op, target=target), ended)

    def merge(self, pool: str, branch: str, kill: bool) -> None:
        if branch == "main":
            return
        op = f"op-{self.number()}"
        parent, change = self.models[pool].merge(op, branch)
        given = ("merge", pool, branch, "--meta", f"op={op}")
        ended = self.run(*given, kill=kill, companion=self.companion(pool, branch))
        self.settle(pool, parent, change, ended)
        if change.version:
            for each in self.models[pool].lines[branch].changes:
                each.merges.append(change)

    def upkeep(self, pool: str, branch: str, kill: bool) -> None:
        keeping = [*self._keeping(pool, branch), ("purge", pool, "--keep", "0s")]
        given = self.chance.choice(keeping)
        ended = self.run(*given, kill=kill, companion=self.companion(pool, branch))
        if ended.status != DONE and self.chance.random() < 0.5:
            self.insist(*given)

    # ---------------------------------------------------------------- branches and tags

    def make_branch(self, pool: str, branch: str, kill: bool) -> None:
        model = self.models[pool]
        if len(model.lines) > 4:
            return
        name = f"b{self.number()}"
        ended = self.run("branch", pool, name, "--at", branch, kill=kill)
        is_there = name in self.readers.branches(pool)
        assert is_there or ended.status != DONE, ended
        if is_there:
            assert ended.status in (None, DONE, UNKNOWN), ended
            model.branch(name, branch)

    def delete_branch(self, pool: str, branch: str, kill: bool) -> None:
        model = self.models[pool]
        if branch == "main" or any(line.parent == branch for line in model.lines.values()):
            return
        before = self.readers.tags(pool)
        ended = self.run("branch", pool, "-d", branch, kill=kill)
        is_there = branch in self.readers.branches(pool)
        assert not is_there or ended.status != DONE, ended
        if not is_there:
            (tag,) = self.readers.tags(pool) - before
            model.deleted[tag] = branch, model.lines.pop(branch)

    def restore_branch(self, pool: str, branch: str, kill: bool) -> None:
        model = self.models[pool]
        fits = [tag for tag, (_, line) in model.deleted.items() if line.parent in model.lines]
        if not fits:
            return
        tag = self.chance.choice(fits)
        name, line = model.deleted[tag]
        ended = self.run("branch", pool, name, "--at", tag, kill=kill)
        is_there = name in self.readers.branches(pool)
        assert is_there or ended.status != DONE, ended
        if is_there:
            model.lines[name] = line
            if tag not in self.readers.tags(pool):
                del model.deleted[tag]

    def tag(self, pool: str, branch: str, kill: bool) -> None:
        model = self.models[pool]
        if model.tags and self.chance.random() < 0.5:
            name = self.chance.choice(list(model.tags))
            self.run("tag", pool, "-d", name, kill=kill)
            if name not in self.readers.tags(pool):
                del model.tags[name]
            return
        name = f"t{self.number()}"
        ended = self.run("tag", pool, name, "--at", branch, kill=kill)
        is_there = name in self.readers.tags(pool)
        assert is_there or ended.status != DONE, ended
        if is_there:
            model.tags[name] = model.content(branch)

    # ---------------------------------------------------------------- ranges

    def points(self, pool: str) -> set[int]:
        """The pool's split points."""
        ranges = self.lake("ranges", pool, "--json").records
        return {each["low"] for each in ranges if each["low"] is not None}

    def split(self, pool: str, branch: str, kill: bool) -> None:
        """Adds or removes split points, all at once; what each branch holds must not change."""
        before = self.points(pool)
        if before and self.chance.random() < 0.4:
            wanted: set[int] = set()
            given = ["unsplit", pool]
        else:
            keys = self.chance.sample(range(1, KEYS), self.chance.randint(1, 4))
            wanted = before.union(keys)
            given = ["split", pool, *(word for key in keys for word in ("--at", str(key)))]
        ended = self.run(*given, kill=kill)
        found = self.points(pool)
        assert found in (before, wanted), f"{ended}: {sorted(before)} became {sorted(found)}"
        assert found == wanted or ended.status != DONE, ended
        if ended.status != DONE and self.chance.random() < 0.5:
            self.insist(*given)
            assert self.points(pool) == wanted, given

    # ---------------------------------------------------------------- erasures

    def erase(self, pool: str, branch: str, kill: bool) -> None:
        """Erases some ids in an append pool, or a key in the other pool; repeats this until nothing holds
        them."""
        if not self.loaded[pool]:
            return
        chosen = self.chance.sample(self.loaded[pool], min(3, len(self.loaded[pool])))
        if pool == "u":
            key = chosen[0]["k"]
            chosen = [record for record in self.loaded[pool] if record["k"] == key]
            words = ("erase", pool, "--key", str(key), "--yes", "--grace", "0s")
        else:
            listed = ", ".join(str(record["id"]) for record in chosen)
            words = ("erase", pool, "--where", f"id in ({listed})", "--yes", "--grace", "0s")
        self.run(*words, kill=kill, companion=self.companion(pool, branch))
        model = self.models[pool]
        held: list[str] = []
        for _ in range(REPEATS):
            ended = self.insist(*words, until=(DONE, PENDING))
            if ended.status == DONE:
                break
            held.append(ended.err.strip())
            self.release(pool)
        else:
            raise AssertionError(f"{words} is held: {held}")
        model.erase({record["id"] for record in chosen})

    def release(self, pool: str) -> None:
        """Deletes what delays an erasure: tags, and deleted branches."""
        model = self.models[pool]
        for name in [*model.tags, *model.deleted]:
            self.lake("tag", pool, "-d", name)
        model.tags.clear()
        model.deleted.clear()
