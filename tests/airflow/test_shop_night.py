"""examples/shop_night.py on a real Airflow: a run over three pools fails, is refused, cleared, killed, backfilled.

Meanwhile a reader looks at the three pools at one moment, again and again: a day is in all of them, or in none.

With LAKE_VIEW_PICTURES=FOLDER the pictures of docs/airflow-transactions.md are taken anew.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import psutil
import pyarrow as pa
import pytest

from local.api import FINISHED, ApiError
from local.services import running
from log_lake.lake import Lake
from log_lake.lake.open_transactions import transactions
from tests.airflow.conftest import NIGHTS, Agent
from tests.airflow.pictures import draw_graph, is_drawing, open_airflow
from tests.airflow.view.pages import picture
from tests.support.spark.processes import await_true

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1_800)]

DAG = "shop_night"
POOLS = ("orders", "payments", "totals")
INSIDE = ("load_orders", "load_payments", "total", "check", "approve")
SECONDS = 900.0
SETTLED = 10.0
"""Seconds after which Airflow has seen that the process that asked has ended (test_provider_on_airflow.py)."""


def watch(lake: Lake, stopping: threading.Event) -> tuple[set[dt.date], list[dict[dt.date, int]]]:
    """Reads the pools at one moment, again and again: the days that it has seen, and those of some pools only."""
    whole: set[dt.date] = set()
    half: list[dict[dt.date, int]] = []
    while not stopping.wait(0.5):  # until the tests are over
        seen = Counter(day for days in held(lake).values() for day in days)
        whole |= set(seen)
        if any(count != len(POOLS) for count in seen.values()):
            half.append(dict(seen))
    return whole, half


def held(lake: Lake) -> dict[str, dict[dt.date, list[int]]]:
    """The amounts of each of the days, by pool, at one moment."""
    found: dict[str, dict[dt.date, list[int]]] = {}
    for pool, view in lake.at(*POOLS).items():
        days = found.setdefault(pool, {})
        for record in view.to_table().to_pylist():
            day = record["day"] if pool == "totals" else record["time"].date()
            if day in NIGHTS:
                days.setdefault(day, []).append(int(record["amount"]))
    return found


@dataclass(frozen=True)
class Shop:
    """The DAG on a running Airflow, its pools and its files."""

    agent: Agent

    def land(self, pool: str, day: dt.date, amounts: list[int]) -> None:
        folder = self.agent.folder / "shop" / pool
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{day}T{hour:02}:30:00Z,{amount}.00\n" for hour, amount in enumerate(amounts)]
        (folder / f"{day}.csv").write_text("time,amount\n" + "".join(lines))

    def backfill(self, first: dt.date, last: dt.date, *words: str) -> None:
        """As a user asks for it."""
        days = ("--from-date", str(first), "--to-date", str(last))
        self.agent.services.airflow(["backfill", "create", "--dag-id", DAG, *days, *words])

    def await_backfills(self) -> None:
        api = self.agent.services.api
        await_true(
            lambda: (
                all(made["completed_at"] for made in api.get("backfills", dag_id=DAG)["backfills"])
                or time.sleep(0.5)
            ),
            seconds=SECONDS,
            what="the backfills have ended",
        )

    def run_of(self, day: dt.date) -> str:
        (run,) = (
            run["dag_run_id"]
            for run in self.agent.services.api.runs(DAG)
            if run["logical_date"].startswith(str(day))
        )
        return str(run)

    def clear(self, day: dt.date) -> None:
        """All tasks of the run."""
        body = {"dag_run_id": self.run_of(day), "dry_run": False, "only_failed": False}
        self.agent.services.api.request("POST", f"dags/{DAG}/clearTaskInstances", body=body)

    def states(self, day: dt.date) -> dict[str, str]:
        tasks = self.agent.services.api.tasks(DAG, self.run_of(day))
        return {task["task_id"].removeprefix("night."): task["state"] for task in tasks}

    def end_of(self, day: dt.date) -> str:
        return self.agent.services.api.wait(DAG, self.run_of(day), seconds=SECONDS)

    def await_question(self, day: dt.date) -> None:
        """Returns when a person is asked; fails if the run ends before."""

        def asked() -> bool:
            assert self.agent.services.api.run(DAG, self.run_of(day))["state"] not in FINISHED, self.states(
                day
            )
            return self.states(day)["approve"] == "awaiting_input"

        await_true(lambda: asked() or time.sleep(0.5), seconds=SECONDS, what=f"a person is asked about {day}")

    def answer(self, day: dt.date, option: str) -> None:
        """As a person does in Airflow's page, once Airflow waits for it."""
        api, run = self.agent.services.api, self.run_of(day)
        self.await_question(day)
        time.sleep(SETTLED)
        path = f"dags/{DAG}/dagRuns/{run}/taskInstances/night.approve/-1/hitlDetails"
        with contextlib.suppress(ApiError):  # it was answered meanwhile
            api.request("PATCH", path, body={"chosen_options": [option], "params_input": {}})

    def held(self, day: dt.date) -> dict[str, list[int]]:
        """The amounts of a day, by pool, read by another process than Airflow's."""
        lake = Lake.open(self.agent.lake.store.uri)
        return {pool: days.get(day, []) for pool, days in held(lake).items()}

    def of_run(self, day: dt.date) -> list[str]:
        """The states of the transactions of a run, oldest first."""
        token = f"airflow:{DAG}:{self.run_of(day)}:night"
        return [row.state for row in transactions(Lake.open(self.agent.lake.store.uri)) if row.token == token]


NOTHING: dict[str, list[int]] = {pool: [] for pool in POOLS}


@pytest.fixture(scope="module")
def shop(agent: Agent) -> Iterator[Shop]:
    amount, time = {"type.amount": "decimal(12,2)"}, {"type.time": "timestamp"}
    for pool in ("orders", "payments"):
        agent.lake.create_pool(pool, key="time", settings=amount | time)
    agent.lake.create_pool("totals", key="day", settings={"type.day": "date"})
    agent.services.api.wait_for_dag(DAG)
    agent.services.api.set_paused(DAG, False)
    stopping = threading.Event()
    with ThreadPoolExecutor(1) as reader:
        watching = reader.submit(watch, Lake.open(agent.lake.store.uri), stopping)
        yield Shop(agent)
        stopping.set()
        whole, half = watching.result()
    assert half == []
    print(f"a reader has seen {sorted(map(str, whole))}")


def test_a_run_that_fails_leaves_nothing_and_cleared_commits_all_pools_at_once_and_once(shop: Shop) -> None:
    day = NIGHTS[0]
    before = [dt.datetime(2025, 6, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=n) for n in range(12)]
    for n in range(12):
        shop.agent.lake.pool("orders").branch().append(pa.table({"time": before, "amount": [n] * 12}))
    shop.land("orders", day, [10, 20])
    shop.backfill(day, day)
    assert shop.end_of(day) == "failed"
    failed = shop.states(day)
    assert (failed["load_payments"], failed["commit"], failed["end"]) == (
        "failed",
        "upstream_failed",
        "success",
    )
    assert shop.held(day) == NOTHING
    assert set(shop.of_run(day)) <= {"aborted"}

    shop.land("payments", day, [5, 25])
    shop.clear(day)
    shop.await_question(day)
    assert shop.held(day) == NOTHING
    assert shop.of_run(day)[-1] == "open"
    assert shop.agent.report_of("lake_compact", pools=["orders"])["jobs"] == 1, "upkeep goes on meanwhile"
    if is_drawing():
        draw(shop, day)
    shop.answer(day, "Approve")
    assert shop.end_of(day) == "success"
    assert set(shop.states(day).values()) == {"success"}
    done = {"orders": [10, 20], "payments": [5, 25], "totals": [30]}
    assert shop.held(day) == done
    assert Lake.open(shop.agent.lake.store.uri).pool("orders").at().depth == 1

    versions = {pool: shop.agent.lake.pool(pool).at().version for pool in POOLS}
    shop.clear(day)
    assert shop.end_of(day) == "success"
    assert set(shop.states(day).values()) == {"skipped"}
    assert shop.held(day) == done
    assert {pool: shop.agent.lake.pool(pool).at().version for pool in POOLS} == versions
    assert shop.of_run(day).count("committed") == 1


def test_a_check_that_fails_and_a_person_who_refuses_leave_nothing(shop: Shop) -> None:
    day = NIGHTS[1]
    shop.land("orders", day, [10, 20])
    shop.land("payments", day, [10])
    shop.backfill(day, day)
    assert shop.end_of(day) == "failed"
    assert (shop.states(day)["check"], shop.states(day)["approve"]) == ("failed", "upstream_failed")
    assert shop.held(day) == NOTHING

    shop.land("payments", day, [10, 20])
    shop.clear(day)
    shop.answer(day, "Reject")
    assert shop.end_of(day) == "success", "no task has failed"
    refused = shop.states(day)
    assert (refused["approve"], refused["commit"], refused["end"]) == ("success", "skipped", "success")
    assert shop.held(day) == NOTHING
    assert set(shop.of_run(day)) <= {"aborted"}


def kill_a_load(shop: Shop) -> None:
    """Kills the process of a task that loads, while it runs."""

    def loading() -> psutil.Process | None:
        for run in shop.agent.services.api.runs(DAG):
            if run["state"] == "running":
                for task in shop.agent.services.api.tasks(DAG, run["dag_run_id"]):
                    if task["task_id"].startswith("night.load") and task["state"] == "running":
                        return shop.agent.task_process(task)
        return None

    await_true(lambda: loading() or time.sleep(0.1), seconds=SECONDS, what="a load runs").kill()


def kill_the_scheduler(shop: Shop) -> None:
    """`local.airflow_standalone` starts another one."""
    started = running(shop.agent.services.run_dir, "airflow")
    assert started is not None
    below = psutil.Process(started.keeper.pid).children(recursive=True)
    (scheduler,) = (one for one in below if "scheduler" in one.cmdline())
    scheduler.kill()


def test_a_backfill_of_three_days_with_a_worker_and_the_scheduler_killed_commits_each_once(
    shop: Shop,
) -> None:
    days = NIGHTS[2:]
    for day in days:
        for pool in ("orders", "payments"):
            shop.land(pool, day, [day.day, 100])
    shop.backfill(days[0], days[-1], "--max-active-runs", "2")
    kill_a_load(shop)
    shop.await_question(days[0])
    shop.answer(days[0], "Approve")
    kill_the_scheduler(shop)
    for day in days[1:]:
        shop.answer(day, "Approve")
    shop.await_backfills()
    assert [shop.end_of(day) for day in days] == ["success"] * 3
    for day in days:
        assert shop.held(day) == {
            "orders": [day.day, 100],
            "payments": [day.day, 100],
            "totals": [day.day + 100],
        }
        assert shop.of_run(day).count("committed") == 1

    versions = {pool: shop.agent.lake.pool(pool).at().version for pool in POOLS}
    shop.backfill(days[0], days[-1], "--reprocess-behavior", "completed")
    shop.await_backfills()
    assert {pool: shop.agent.lake.pool(pool).at().version for pool in POOLS} == versions


def draw(shop: Shop, day: dt.date) -> None:
    """The graph, the question, and the open transaction, as a user sees them."""
    run, services = shop.run_of(day), shop.agent.services
    with open_airflow(services) as open_page:
        page = open_page(f"/dags/{DAG}/runs/{run}")
        draw_graph(page, "airflow-transaction-graph", *INSIDE, has_groups=True)
        page = open_page(f"/dags/{DAG}/runs/{run}/tasks/night.approve/required_actions?map_index=-1")
        page.get_by_label("Show Grid (Press g)").click()
        page.get_by_role("button", name="Approve").wait_for()
        page.wait_for_timeout(2_000)
        picture(page, "airflow-transaction-question")
        page = open_page("/lake/#transactions")
        page.locator("#transactions tbody tr").first.wait_for()
        picture(page.locator("main"), "airflow-transaction-open")
