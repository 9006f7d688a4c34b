"""The erasure agent: removes records from the bytes of every object, with a receipt, until nothing holds them.

    find (no Spark) -> run (mapped: a pool's erasures, one after another) -> report

A run that names records (`where`, `key`, `from`, `to`) and pools begins an erasure in each.  Every run goes on with
the erasures that are pending: an object that a tag or a reader held is deleted by the first run after it was
released.  So the DAG has a schedule (LAKE_ERASURE_SCHEDULE, default daily at 4:30), and a run without a pending
erasure does nothing.  `report` says what was deleted, what is held and how to release it, and fails as long as an
erasure is pending.  A dry run logs what holds such records.  An erasure cannot be undone:

    airflow dags trigger lake_erasure --conf '{"pools": ["people"], "key": "4711", "dry_run": true}'

Airflow keeps the parameters of a run.  If a condition may not be kept there, begin with `lake erase`: the next run
goes on with it by its id.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param, task

from airflow_lake.defaults import REPORT, WORK, agent


def text(title: str, description: str) -> Param:
    """A text that may be left out."""
    return Param(None, type=["null", "string"], title=title, description=description)


PARAMS = {
    "where": text("Where", "Erase records that fulfil this condition, in the pools that are named"),
    "key": text("Key", "Erase records of this key: a JSON value or list, or plain text"),
    "from": text("From key", "Erase records from this key on (inclusive)"),
    "to": text("To key", "Erase records up to this key (exclusive)"),
    "grace": text(
        "Grace",
        "Objects that were written and not committed may be those of a load for this long (default: vacuum.grace)",
    ),
    "keep_history": Param(
        False,
        type="boolean",
        title="Keep the history",
        description="Do not purge the journal, whose entries may hold keys and bounds of the records",
    ),
}


@agent("erasure", usually="30 4 * * *", doc=__doc__, params=PARAMS)
def lake_erasure() -> None:
    @task
    def find(params: dict[str, Any]) -> list[dict[str, Any]]:
        from lake_core.agents.erasure import run as erasure

        return erasure.find(params)

    @task(map_index_template="{{ work['title'] }}", **WORK)
    def run(work: dict[str, Any]) -> dict[str, Any]:
        from spark_apps import erasure

        return erasure.run(work)

    @task(**REPORT)
    def report(all_work: list[dict[str, Any]] | None, results: list[dict[str, Any]] | None) -> dict[str, int]:
        from lake_core.agents.erasure import report as erasure

        return erasure.report(all_work, list(results or []))

    all_work = find()
    report(all_work, run.expand(work=all_work))


lake_erasure()
