"""DAGs as a user of the provider writes them; the lake is that of the connection `lake_own`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import (
    DAG,
    Asset,
    AssetWatcher,
    CronDataIntervalTimetable,
    PartitionedAssetTimetable,
    task,
    task_group,
)

from airflow_lake.assets import asset_uri, lake_asset
from airflow_lake.groups import (
    CheckpointGroup,
    CompactGroup,
    ErasureGroup,
    IngestGroup,
    IntervalsGroup,
    LakeConfig,
    LakeUpkeep,
    RetentionGroup,
)
from airflow_lake.groups.decorator import lake_task
from airflow_lake.operators.checkpoint import LakeCheckpointOperator
from airflow_lake.operators.compact import LakeCompactOperator
from airflow_lake.operators.delete import LakeDeleteOperator
from airflow_lake.operators.load import LakeLoadOperator
from airflow_lake.operators.query import LakeQueryOperator
from airflow_lake.operators.replace import LakeReplaceOperator
from airflow_lake.operators.retain import LakeRetainOperator
from airflow_lake.reach import open_lake
from airflow_lake.sensors.transactions import LakeTransactionSensor
from airflow_lake.triggers.transactions import TransactionTrigger

LAKE = "lake_own"
ORDERS = {"lake": LAKE, "pool_name": "orders"}

with DAG("own_orders", schedule=None, params={"folder": ""}):
    (
        LakeLoadOperator(task_id="load", files="{{ params.folder }}/a.ndjson", on_spark=False, **ORDERS)
        >> LakeLoadOperator(task_id="load_on_spark", files=["{{ params.folder }}/b.ndjson"], **ORDERS)
        >> LakeDeleteOperator(task_id="delete", where="v = 'bad'", reason="{{ run_id }}", **ORDERS)
        >> LakeReplaceOperator(
            task_id="replace", files="{{ params.folder }}/c.ndjson", low="20", high="30", **ORDERS
        )
        >> LakeCompactOperator(task_id="compact", strategy="full", **ORDERS)
        >> LakeCheckpointOperator(task_id="checkpoint", **ORDERS)
        >> LakeRetainOperator(task_id="retain", **ORDERS)
        >> LakeQueryOperator(task_id="query", sql="select k, v from orders order by k", lake=LAKE)
        >> LakeQueryOperator(
            task_id="holds", sql="select count(*) = 3 from orders", must_hold=True, lake=LAKE
        )
    )

with DAG("own_orders_loaded", schedule=[lake_asset("orders", lake=LAKE)]):

    @task
    def events(triggering_asset_events: Any = None) -> list[Any]:
        return [
            [event.asset.uri, event.extra]
            for several in triggering_asset_events.values()
            for event in several
        ]

    events()

with DAG("own_mapped", schedule=None):

    @task_group
    def each(pool: str) -> None:
        CheckpointGroup(LakeConfig(lake=LAKE, pools=[pool]))

    each.expand(pool=["kept_a", "kept_b"])

with DAG("own_days", schedule=None, params={"folder": "", "begin": "", "end": ""}):
    LakeReplaceOperator(
        task_id="replace",
        lake=LAKE,
        pool_name="days",
        files="{{ params.folder }}/*.ndjson",
        begin="{{ params.begin }}",
        end="{{ params.end }}",
    )

with DAG("own_days_loaded", schedule=None, params={"file": "", "day": ""}):
    LakeLoadOperator(
        task_id="load",
        lake=LAKE,
        pool_name="days",
        files="{{ params.file }}",
        partitions="{{ params.day }}",
        on_spark=False,
    )

with DAG("own_day", schedule=PartitionedAssetTimetable(assets=lake_asset("days", lake=LAKE))):

    @task
    def day(dag_run: Any = None) -> str:
        return str(dag_run.partition_key)

    day()

with DAG(
    "own_intervals",  # three days of Tokyo, and then one
    schedule=CronDataIntervalTimetable("0 0 1,4,5 * *", "Asia/Tokyo"),
    start_date=datetime(2025, 12, 31),
    end_date=datetime(2026, 1, 4),
    catchup=True,
    max_active_runs=1,
):
    IntervalsGroup(LakeConfig(lake=LAKE, pools=["visits", "visits_bad", "visits_paused"]))

with DAG("own_interval", schedule=PartitionedAssetTimetable(assets=lake_asset("visits", lake=LAKE))):
    day()


class InOnePack(IngestGroup):
    """All batches are one pack, and with them goes work on a pool that is gone."""

    def find_task(self) -> Any:
        @lake_task
        def find(config: dict[str, Any]) -> list[dict[str, Any]]:
            from log_lake.agents.driver import find as find_work
            from log_lake.agents.packs import write_packs
            from log_lake.agents.work import encoded

            found = find_work("ingest", config["request"], open_lake=open_lake)
            all_work = [encoded(work) for work in found.work]
            gone = {**all_work[0], "pool": "half_gone", "token": "gone"}
            (name,) = write_packs(open_lake(LAKE), [[gone, *all_work]])
            return [{"title": "one pack", "lake": LAKE, "pack": name}]

        return find


with DAG("own_half", schedule=None):
    InOnePack(LakeConfig(lake=LAKE, pools=["half"]))

with DAG("own_half_loaded", schedule=[lake_asset("half", lake=LAKE)]):
    events()

with DAG("own_deep", schedule=None, params={"file": ""}):
    LakeLoadOperator(task_id="load", lake=LAKE, pool_name="deep", files="{{ params.file }}", on_spark=False)

with DAG("own_deep_loaded", schedule=[lake_asset("deep", lake=LAKE)], max_active_runs=1):
    CompactGroup(LakeConfig(lake=LAKE, pools=["deep"]))

with DAG("own_wait", schedule=None):
    waited = LakeTransactionSensor(task_id="wait", lake=LAKE, pools=["waited"], pause=1.0)
    waited >> LakeQueryOperator(task_id="query", sql="select count(*) as n from waited", lake=LAKE)

with DAG("own_wait_after", schedule=None, params={"after": ""}):
    LakeTransactionSensor(task_id="wait", lake=LAKE, pools=["waited"], after="{{ params.after }}", pause=1.0)

WATCHED = Asset(
    asset_uri("watched", lake=LAKE),
    watchers=[
        AssetWatcher(name="watched", trigger=TransactionTrigger(pools=["watched"], lake=LAKE, pause=1.0))
    ],
)

with DAG("own_watch", schedule=[WATCHED]):

    @task
    def watched(triggering_asset_events: Any = None) -> list[Any]:
        return [event.extra for several in triggering_asset_events.values() for event in several]

    watched()

with DAG("own_upkeep", schedule=None):

    @task
    def before() -> str:
        return "my own work"

    before() >> LakeUpkeep(
        LakeConfig(lake=LAKE, pools=["kept_a", "kept_b"]), agents=["compact", "checkpoint"]
    )

with DAG("own_order", schedule=None):
    LakeUpkeep(LakeConfig(lake=LAKE, pools=["ordered"], airflow_pool="own_order"), agents=["compact"])
    IngestGroup(LakeConfig(lake=LAKE, pools=["ordered"], airflow_pool="own_order"))

with DAG("own_approval", schedule=None):
    RetentionGroup(LakeConfig(lake=LAKE, pools=["asked_old"], approval=True))
    ErasureGroup(LakeConfig(lake=LAKE, pools=["asked_who"], approval=True, asked={"where": "who = 'ann'"}))
