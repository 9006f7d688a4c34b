"""Three pools of a shop change at one moment, or none of them does: docs/airflow-transactions.md goes through it.

Each night brings a file of orders and a file of payments.  The run of a day loads both, adds a row to `totals`,
checks that both files say the same, and asks a person.  Then it commits all three pools at once.

    lake create orders --key time --type time=timestamp --type 'amount=decimal(12,2)'
    lake create payments --key time --type time=timestamp --type 'amount=decimal(12,2)'
    lake create totals --key day --type day=date
"""

import datetime as dt

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, CronDataIntervalTimetable

from airflow_lake.groups import LakeTransaction
from airflow_lake.operators.query import LakeQueryOperator
from airflow_lake.operators.replace import LakeReplaceOperator
from airflow_lake.operators.statement import LakeStatementOperator

FILES = "/data/shop"
DAILY = CronDataIntervalTimetable("@daily", "UTC")
FIRST = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

BEGIN, END = "{{ data_interval_start }}", "{{ data_interval_end }}"
DAY = "{{ data_interval_start | ds }}"
OF_DAY = f"time >= '{BEGIN}' AND time < '{END}'"

RETRIES = {"retries": 2, "retry_delay": dt.timedelta(minutes=1)}

with (
    DAG("shop_night", schedule=DAILY, start_date=FIRST, catchup=False, default_args=RETRIES),
    LakeTransaction(
        pools=["orders", "payments", "totals"], group_id="night", message=f"orders of {DAY}"
    ) as tx,
):
    loads = [
        LakeReplaceOperator(
            task_id=f"load_{name}",
            pool_name=name,
            files=f"{FILES}/{name}/{DAY}.csv",
            begin=BEGIN,
            end=END,
            transaction=tx.id,
        )
        for name in ("orders", "payments")
    ]
    total = LakeStatementOperator(
        task_id="total",
        sql=f"""
            INSERT INTO totals BY NAME
            SELECT DATE '{DAY}' AS day, count(*) AS orders, sum(amount) AS amount
            FROM orders WHERE {OF_DAY}
        """,
        transaction=tx.id,
    )
    check = LakeQueryOperator(
        task_id="check",
        sql=f"""
            SELECT amount = (SELECT sum(amount) FROM payments WHERE {OF_DAY}) AS holds, orders, amount
            FROM totals WHERE day = DATE '{DAY}'
        """,
        must_hold=True,
        transaction=tx.id,
    )
    approve = ApprovalOperator(
        task_id="approve",
        subject=f"Publish the orders of {DAY}?",
        body="{% set row = ti.xcom_pull(task_ids='night.check')[0] %}"
        "{{ row.orders }} orders, {{ '%.2f' % row.amount }} in all",
    )
    loads >> total >> check >> approve
