"""Operators and groups in a DAG file: what Airflow can keep of them, and what is refused when it is parsed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log_lake.agents.jobs import list_jobs
from log_lake.lake import Lake
from tests.support.repository import ROOT

pytestmark = pytest.mark.airflow

KEPT = """
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization
bag = DagBag(dag_folder=sys.argv[1])
kept = {name: DagSerialization.from_dict(DagSerialization.to_dict(dag)) for name, dag in bag.dags.items()}
answer = {
    "errors": bag.import_errors,
    "tasks": {name: sorted(dag.task_ids) for name, dag in kept.items()},
    "slow": sorted({name.partition(".")[0] for name in sys.modules} & {"pyspark", "pyarrow", "duckdb", "s3fs"}),
}
"""
REFUSED = """
from airflow.sdk import DAG
from airflow_lake.groups import CheckpointGroup, CompactGroup, LakeConfig, LakeUpkeep
from airflow_lake.operators.delete import LakeDeleteOperator
from airflow_lake.operators.load import LakeLoadOperator
from airflow_lake.operators.replace import LakeReplaceOperator
from airflow_lake.triggers.transactions import TransactionTrigger
answer = []
with DAG("d"):
    for make in (
        lambda: LakeDeleteOperator(task_id="a", pool_name="p"),
        lambda: LakeDeleteOperator(task_id="b", pool_name="p", where="k = 1", everything=True),
        lambda: LakeReplaceOperator(task_id="c", pool_name="p", begin="2026-01-01"),
        lambda: LakeReplaceOperator(task_id="e", pool_name="p", files="x"),
        lambda: LakeReplaceOperator(task_id="f", pool_name="p", begin="x", end="y", low="1"),
        lambda: TransactionTrigger(pools=""),
        lambda: TransactionTrigger(pools=["p"], pause=0),
        lambda: LakeUpkeep(agents=["ingest"]),
        lambda: CheckpointGroup(LakeConfig(branch="dev")),
        lambda: LakeUpkeep(agents=[]),
        lambda: CompactGroup("logs"),
        lambda: LakeUpkeep(["logs"]),
        lambda: LakeUpkeep(agents=5),
        lambda: LakeLoadOperator(task_id="g", pool_name="p", files="x", missing="empty"),
        lambda: LakeLoadOperator(task_id="h", pool_name="{{ params.p }}", files="x", partitions=["a"]),
    ):
        try:
            make()
        except ValueError as error:
            answer.append(str(error))
        else:
            answer.append("")
    LakeUpkeep(LakeConfig(branch="dev"), agents=["checkpoint", "compact"])
    LakeUpkeep(agents="retention", group_id="alone")
    CompactGroup(group_id="again")
"""
UNREAD = """
from airflow.sdk import DAG, task_group
from airflow_lake.groups import CheckpointGroup, CompactGroup, LakeConfig, LakeTransaction, LakeUpkeep
from airflow_lake.operators.apply import LakeApplyOperator
from airflow_lake.operators.checkpoint import LakeCheckpointOperator
from airflow_lake.operators.compact import LakeCompactOperator
from airflow_lake.operators.delete import LakeDeleteOperator
from airflow_lake.operators.load import LakeLoadOperator
from airflow_lake.operators.query import LakeQueryOperator
from airflow_lake.operators.replace import LakeReplaceOperator
from airflow_lake.sensors.transactions import LakeTransactionSensor
from airflow_lake.triggers.transactions import TransactionTrigger
answer = {}
with DAG("d", default_args={"branch": "dev", "spark": "s"}):
    LakeQueryOperator(task_id="q", sql="select 1")
    LakeCheckpointOperator(task_id="c", pool_name="p")
    for name, make in {
        "text": lambda: LakeDeleteOperator(task_id="a", pool_name="p", everything="false"),
        "template": lambda: LakeDeleteOperator(task_id="b", pool_name="p", everything="{{ params.all }}"),
        "none": lambda: LakeDeleteOperator(task_id="e", pool_name="p", everything=None),
        "bound": lambda: LakeDeleteOperator(task_id="p", pool_name="p", low="a", high=None),
        "end": lambda: LakeReplaceOperator(task_id="r", pool_name="p", begin="2026-01-01", end=None),
        "pause": lambda: LakeTransactionSensor(task_id="s", pools=["p"], deferrable=False, pause=0),
        "on_spark": lambda: LakeLoadOperator(task_id="f", pool_name="p", files="x", on_spark="no"),
        "compact": lambda: LakeCompactOperator(task_id="g", pool_name="p", on_spark="{{ x }}"),
        "purging": lambda: LakeCheckpointOperator(task_id="h", pool_name="p", purging=0),
        "must_hold": lambda: LakeQueryOperator(task_id="i", sql="select 1", must_hold="yes"),
        "max_rows": lambda: LakeQueryOperator(task_id="j", sql="select 1", max_rows=0),
        "maintenance": lambda: LakeTransactionSensor(task_id="k", pools=["p"], maintenance="no"),
        "deferrable": lambda: LakeTransactionSensor(task_id="l", pools=["p"], deferrable=None),
        "checkpoint's branch": lambda: LakeCheckpointOperator(task_id="m", pool_name="p", branch="dev"),
        "query's branch": lambda: LakeQueryOperator(task_id="n", sql="select 1", branch="dev"),
        "apply's spark": lambda: LakeApplyOperator(task_id="o", path="x", spark="s"),
        "approval": lambda: LakeUpkeep(LakeConfig(approval=True), agents=["compact"]),
        "asked": lambda: LakeConfig(asked={"branch": "dev"}),
        "submit": lambda: LakeConfig(spark="s", submit={"conn_id": "t"}),
        "trigger's template": lambda: TransactionTrigger(pools=["{{ x }}"]),
        "trigger's rest": lambda: TransactionTrigger(pools=["p"], rest=-1),
        "trigger's after": lambda: TransactionTrigger(pools=["p"], after={"q": ["id", 1]}),
        "trigger's maintenance": lambda: TransactionTrigger(pools=["p"], maintenance="no"),
        "no XCom": lambda: CompactGroup(default_args={"do_xcom_push": False}),
        "upkeep without XCom": lambda: LakeUpkeep(default_args={"do_xcom_push": False}, group_id="u"),
        "mapped transaction": lambda: task_group(group_id="m")(
            lambda k: LakeTransaction(pools=["p"])
        ).expand(k=[1]),
        "transaction without XCom": lambda: LakeTransaction(pools=["p"], default_args={"do_xcom_push": False}),
        "job without XCom": lambda: LakeConfig(spark="s", submit={"do_xcom_push": False}),
        "by hand": lambda: LakeDeleteOperator(task_id="t", pool_name="p", low="a", by_hand="{{ params.x }}"),
    }.items():
        try:
            make()
        except ValueError as error:
            answer[name] = str(error)
        else:
            answer[name] = ""
    LakeUpkeep(LakeConfig(approval=True, spark="s", submit={"application": "local:///agent.py"}))
"""
OUTLETS = """
from types import SimpleNamespace
from airflow.sdk import DAG, Asset
from airflow.sdk.execution_time.context import OutletEventAccessors
from airflow_lake.assets import lake_asset
from airflow_lake.operators.load import LakeLoadOperator
answer = []
for file in sys.argv[2:]:
    with DAG("d"):
        named = [lake_asset("p", lake=sys.argv[1]), lake_asset("q", lake=sys.argv[1]), Asset("other")]
        operator = LakeLoadOperator(
            task_id="a", lake=sys.argv[1], pool_name="p", files=file, on_spark=False, outlets=named
        )
    task = SimpleNamespace(dag_id="d", run_id="r", task_id="a", map_index=-1)
    events = OutletEventAccessors()
    operator.execute({"params": {}, "ti": task, "outlet_events": events})
    kept = [one for one in operator.outlets if isinstance(one, Asset)]
    aliased = [event for event in events[operator.alias].asset_alias_events]
    answer.append([[one.uri.rpartition("/")[2], events[one].extra.get("version")] for one in kept] + aliased)
"""
APPLIED = """
from types import SimpleNamespace
from airflow_lake.operators.apply import LakeApplyOperator
answer = []
for how in json.loads(sys.argv[2]):
    try:
        operator = LakeApplyOperator(task_id="a", lake=sys.argv[1], **how)
        context = {"dag": SimpleNamespace(folder=sys.argv[3]), "params": {"path": "", "dry_run": ""}}
        answer.append(operator.execute(context))
    except Exception as error:
        answer.append(f"{type(error).__name__}: {error}")
"""
FILLED = """
from types import SimpleNamespace
from airflow.sdk import DAG
from airflow.sdk.execution_time.context import OutletEventAccessors
from airflow_lake.operators.compact import LakeCompactOperator
from airflow_lake.operators.delete import LakeDeleteOperator
from airflow_lake.operators.load import LakeLoadOperator
from airflow_lake.operators.replace import LakeReplaceOperator
from airflow_lake.sensors.transactions import LakeTransactionSensor
KINDS = {
    **{"delete": LakeDeleteOperator, "load": LakeLoadOperator, "replace": LakeReplaceOperator},
    **{"compact": LakeCompactOperator, "wait": LakeTransactionSensor},
}
answer = []
for kind, native, value, how, *index in json.loads(sys.argv[2]):
    with DAG("d", render_template_as_native_obj=native):
        pool = {"pools": ["p"]} if kind == "wait" else {"pool_name": "p"}
        operator = KINDS[kind](task_id="a", **{"lake": sys.argv[1], **pool, **how})
    task = SimpleNamespace(dag_id="d", run_id="r", task_id="a", map_index=index[0] if index else -1)
    context = {"params": {"w": value}, "ti": task, "outlet_events": OutletEventAccessors()}
    try:
        operator.render_template_fields(context)
        answer.append(operator.execute(context)["version"])
    except Exception as error:
        answer.append(f"{type(error).__name__}: {error}")
"""
WAITED = """
from airflow.sdk.exceptions import TaskDeferred
from airflow_lake.sensors.transactions import LakeTransactionSensor
from log_lake.lake import Lake
import pyarrow as pa
class Store(dict):
    set, delete = dict.__setitem__, dict.pop
def tried(**how):
    try:
        LakeTransactionSensor(task_id="a", lake=sys.argv[1], pools=["p"], **how).execute(context)
    except TaskDeferred as deferred:
        return deferred.trigger.after["p"][1]
context, lake = {"task_state_store": Store()}, Lake.open(sys.argv[1])
answer = [tried()]
lake.pool("p").branch().append(pa.table({"k": [2]}))
answer += [tried(), tried(after=0)]
sensor = LakeTransactionSensor(task_id="a", lake=sys.argv[1], pools=["p"])
sensor.execute_complete(context, {"pool": "p", "version": 2})
answer += [tried()]
worker = LakeTransactionSensor(task_id="b", lake=sys.argv[1], pools=["p", "q"], deferrable=False, mode="reschedule")
from airflow.sdk.exceptions import AirflowRescheduleException
from types import SimpleNamespace
context = {"task_state_store": Store(), "ti": SimpleNamespace(
    get_first_reschedule_date=lambda c: None, try_number=1, task=worker, max_tries=0, map_index=-1,
)}
import log_lake.lake.watch
log_lake.lake.watch.MAX_ENTRIES = 2
for wrote in (0, 1):
    if wrote:  # behind more entries of another branch than a look reads
        lake.pool("q").create_branch("dev")
        for k in range(5):
            lake.pool("q").branch("dev").append(pa.table({"k": [k]}))
        lake.pool("q").branch().append(pa.table({"k": [3]}))
    try:
        answer += [worker.execute(context)]
    except AirflowRescheduleException:
        answer += ["waits"]
from log_lake.agents.checkpoint.run import checkpoint_and_purge
lake.configure_pool("p", {"history.keep": "0s"})
lake.pool("p").branch().append(pa.table({"k": [9]}))
checkpoint_and_purge(lake, "p", now=lake.context.now() + 60)
late = LakeTransactionSensor(task_id="c", lake=sys.argv[1], pools=["p"], deferrable=False, after=1)
answer += [late.execute(context)["version"]]
from lake_core.errors import Unavailable
def away(*words):
    raise Unavailable("the store is away")
log_lake.lake.watch.Watcher.look = away
gone = LakeTransactionSensor(task_id="d", lake=sys.argv[1], pools=["q"], deferrable=False, mode="reschedule")
try:
    gone.execute({**context, "task_state_store": Store()})
except AirflowRescheduleException:
    answer += ["waits on"]
"""
TEMPLATED = """
from types import SimpleNamespace
from airflow.sdk import DAG
from airflow.sdk.execution_time.context import OutletEventAccessors
from airflow_lake.operators.replace import LakeReplaceOperator
answer = []
for low in ("b", "x"):
    with DAG("d"):
        operator = LakeReplaceOperator(task_id=low, lake=sys.argv[1], pool_name="{{ params.w }}", low=low)
    task = SimpleNamespace(dag_id="d", run_id="r", task_id=low, map_index=-1)
    context = {"params": {"w": "p"}, "ti": task, "outlet_events": OutletEventAccessors()}
    operator.render_template_fields(context)
    operator.execute(context)
    events = context["outlet_events"][operator.alias].asset_alias_events
    answer.append([[event.dest_asset_key.uri, event.extra["version"]] for event in events])
"""
UPKEPT = """
from airflow_lake.operators.checkpoint import LakeCheckpointOperator
from airflow_lake.operators.compact import LakeCompactOperator
from airflow_lake.operators.query import LakeQueryOperator
from airflow_lake.operators.retain import LakeRetainOperator
answer = []
for kind, pool in ((LakeCompactOperator, "p"), (LakeCheckpointOperator, "p"), (LakeRetainOperator, "p"),
                   (LakeCompactOperator, "none")):
    how = {"on_spark": False} if kind is LakeCompactOperator else {}
    try:
        answer.append(kind(task_id="a", lake=sys.argv[1], pool_name=pool, **how).execute({}))
    except Exception as error:
        answer.append(f"{type(error).__name__}: {error}")
LakeQueryOperator(task_id="a", lake=sys.argv[1], sql="select 1").execute({})
"""
QUERIED = """
from airflow_lake.operators.query import LakeQueryOperator
answer = []
for sql in (
    *("select true", "select 2", "select 1.5::decimal(4, 1)"),
    *("select false", "select 0", "select 'nan'::double", "select 'false'", "select null", "select 1 where false"),
    "select repeat('x', 3000000)",
    "select false, repeat('x', 1000000)",
):
    try:
        LakeQueryOperator(task_id="a", lake=sys.argv[1], sql=sql, must_hold=True).execute({})
        answer.append("held")
    except Exception as error:
        answer.append(f"{type(error).__name__}: {error}")
decimals = "select 12345678901234567.89::decimal(20, 2) as k, 1.50::decimal(4, 2) as p, 0.1::double as d"
answer.append(LakeQueryOperator(task_id="b", lake=sys.argv[1], sql=decimals).execute({}))
"""

STATED = """
from types import SimpleNamespace
from airflow_lake.operators.statement import LakeStatementOperator
answer = []
for number, sql in enumerate((
    "update p set v = v + 1 where k = 2",
    "update p set v = v + 1 where k = 2",
    "insert into p by name select k + 10 as k, v from p where k = 1",
    "delete from p where k = 3",
    "merge into p t using (values (1, 7), (4, 8)) s (k, v) using (k) when matched then update set v = s.v "
    "when not matched then insert *",
    "create table q as select v, k from p order by v desc",
    "select 1",
    "drop table p",
)):
    operator = LakeStatementOperator(task_id=f"t{number - (number == 1)}", lake=sys.argv[1], sql=sql)
    task = SimpleNamespace(dag_id="d", run_id="r", task_id=operator.task_id, map_index=-1)
    planned = [(one.pool, one.writes) for one in operator.planned_effects()]
    try:
        done = operator.execute({"ti": task})
        assert planned == [(done["pool"], True)] and operator.effects[0].version == done["version"]
        answer.append([done["verb"], done["records"], done["repeated"]])
    except Exception as error:
        answer.append(f"{type(error).__name__}: {error}")
"""


NO_XCOM = (
    "{}: do_xcom_push=False in default_args: the tasks of the group hand over their work by XCom. Leave it out, or "
    "say default_args={{'do_xcom_push': True}} for the group"
)


def ask(folder: Path, program: str, *words: str) -> Any:
    """The value of `answer` at the end of a program."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "LAKE"))}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import json, sys\n{program}\nprint('ANSWER ' + json.dumps(answer))",
            *words,
        ],
        env={**clean, "AIRFLOW_HOME": str(folder), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert lines, done.stderr
    return json.loads(lines[-1].removeprefix("ANSWER "))


def test_airflow_can_keep_the_dags_of_a_user_and_reads_no_lake_for_it(tmp_path: Path) -> None:
    answer = ask(tmp_path, KEPT, str(Path(__file__).with_name("dags")))
    assert answer["errors"] == {}
    assert answer["slow"] == []
    assert answer["tasks"]["own_upkeep"] == [
        "before",
        *(f"lake_upkeep.checkpoint.{name}" for name in ("find", "report", "run")),
        *(f"lake_upkeep.compact.{name}" for name in ("find", "report", "run")),
    ]


def test_a_statement_changes_its_pool_once_for_each_task_of_a_run(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    pool = lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1, 2, 3], "v": [0, 0, 0]}))
    said = ask(tmp_path, STATED, str(tmp_path / "lake"))
    assert said[:2] == [["updated", 1, False], ["updated", 1, True]], "a task that is tried again"
    assert said[2:4] == [["inserted", 1, False], ["deleted", 1, False]]
    assert said[4:6] == [["merged", 2, False], ["created", 4, False]]
    assert all(text.startswith("InvalidInput: ") and "\n" not in text for text in said[6:])
    assert [tuple(row.values()) for row in pool.at().to_table().to_pylist()] == [
        (1, 7),
        (2, 1),
        (4, 8),
        (11, 0),
    ]
    assert lake.pool("q").at().to_table()["v"].to_pylist() == [8, 7, 1, 0]


def test_what_cannot_be_is_refused_when_the_file_is_parsed(tmp_path: Path) -> None:
    said = ask(tmp_path, REFUSED)
    assert "" not in said
    assert said[0].startswith("a: give one or more of low, high and where")
    assert said[1].startswith("b: give one or more of low, high and where, or everything=True and none")
    assert all(text[3:].startswith("give either begin and end") for text in said[2:5])
    assert "pools must be a list of names" in said[5]
    assert said[6].startswith("TransactionTrigger: pause must be a number of seconds, at least 0.05")
    assert said[7] == (
        "LakeUpkeep: no agent 'ingest'; the agents are compact, split, tombstones, index, checkpoint, retention"
    )
    assert said[8].startswith("the agent checkpoint has no parameter 'branch'")
    assert said[10:13] == [
        "CompactGroup: config must be a LakeConfig, as LakeConfig(pools=['flights']) (got 'logs')",
        "LakeUpkeep: config must be a LakeConfig, as LakeConfig(pools=['flights']) (got ['logs'])",
        "LakeUpkeep: agents must be a list of texts (got 5)",
    ]
    assert said[14].startswith("h: partitions need a pool, a lake and a branch that are no templates")
    assert said[13] == "g: missing must be fail or skip (got 'empty')"
    agents = "the agents are compact, split, tombstones, index, checkpoint, retention"
    assert said[9] == f"LakeUpkeep: agents is empty; {agents}"


def test_an_argument_that_nothing_would_read_or_that_would_be_misread_is_refused(tmp_path: Path) -> None:
    """A text counts as true: `everything="false"` deleted a pool.  The DAG's default_args are for others too."""
    said = ask(tmp_path, UNREAD)
    assert said == {
        "text": "a: give one or more of low, high and where, or everything=True and none of them",
        "template": "b: everything must be true or false (got '{{ params.all }}')",
        "none": "e: everything must be true or false (got None)",
        "bound": "p: high is None; give a text, or leave it out: then there is no such bound",
        "end": "r: end is None; give a text, or leave it out: then there is no such bound",
        "pause": "s: pause must be a number of seconds, at least 0.05 (got 0)",
        "on_spark": "f: on_spark must be true or false (got 'no')",
        "compact": "g: on_spark must be true or false (got '{{ x }}')",
        "purging": "h: purging must be true or false (got 0)",
        "must_hold": "i: must_hold must be true or false (got 'yes')",
        "max_rows": "j: max_rows must be a whole number of at least 1 (got 0)",
        "maintenance": "k: maintenance must be true or false (got 'no')",
        "deferrable": "l: deferrable must be true or false (got None)",
        "checkpoint's branch": (
            "m: branch has no meaning here: a checkpoint is of all branches, without Spark; leave it out"
        ),
        "query's branch": (
            'n: branch has no meaning here: the statement names pools and branches ("flights@dev"); leave it out'
        ),
        "apply's spark": (
            "o: spark has no meaning here: the policy file says all, and needs no Spark; leave it out"
        ),
        "approval": "LakeUpkeep: approval has no meaning here: none of compact deletes",
        "asked": "LakeConfig: asked may not have 'branch': write LakeConfig(branch=...)",
        "submit": "LakeConfig: submit may not have 'conn_id': LakeConfig(spark=...) names the connection",
        "trigger's template": (
            "TransactionTrigger: pools may be no templates: nothing fills them in (got ['{{ x }}'])"
        ),
        "trigger's rest": "TransactionTrigger: rest must be a number of seconds, at least 0 (got -1)",
        "trigger's after": "TransactionTrigger: after names the pool 'q', which is none of pools",
        "trigger's maintenance": "TransactionTrigger: maintenance must be true or false (got 'no')",
        "no XCom": NO_XCOM.format("CompactGroup"),
        "upkeep without XCom": NO_XCOM.format("CompactGroup"),
        "mapped transaction": (
            "LakeTransaction: may not be in a mapped group: a run has one transaction of a group, so each mapped "
            "index would abort that of the others. Map the tasks inside instead"
        ),
        "transaction without XCom": NO_XCOM.format("LakeTransaction").replace(
            "their work", "the transaction"
        ),
        "job without XCom": (
            "LakeConfig: submit may not have 'do_xcom_push': the report of the group reads what the job hands over"
        ),
        "by hand": "t: by_hand must be true or false (got '{{ params.x }}')",
    }


def test_assets_that_a_dag_names_as_outlets_have_an_event_if_the_task_committed_to_their_pool(
    tmp_path: Path,
) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("p", key="k")
    for name, content in (("one.ndjson", '{"k": 1}\n'), ("zero.ndjson", "")):
        (tmp_path / name).write_text(content)
    said = ask(tmp_path, OUTLETS, lake.store.uri, str(tmp_path / "zero.ndjson"), str(tmp_path / "one.ndjson"))
    assert said == [[["other", None]], [["p", 1], ["other", None]]]


def test_a_policy_file_is_applied_as_texts_of_templates_say(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("old", key="k")
    (tmp_path / "pools.yaml").write_text("pools: {new: {key: k}}\n")
    (tmp_path / "bad.yaml").write_text("pools: {new: {key: other, kind: x}}\n")
    ways: list[dict[str, Any]] = [
        {"path": "pools.yaml", "dry_run": "True", "prune": "False", "yes": "False"},
        {"path": "pools.yaml", "prune": "True", "yes": "False"},
        {"path": "pools.yaml", "prune": "maybe"},
        {"path": "nothere.yaml"},
        {"path": "bad.yaml"},
        {},
        {"path": "pools.yaml", "dry_run": ""},
        {"path": "pools.yaml", "takes_params": True},
        {"path": "pools.yaml", "prune": "True", "yes": "true"},
    ]
    done = ask(tmp_path, APPLIED, lake.store.uri, json.dumps(ways), str(tmp_path))
    assert done == [
        {"created": 0, "changed": 0, "dropped": 0, "version": None},
        "InvalidInput: a: to remove 1 pool (old), set yes; nothing was changed",
        "InvalidInput: a: prune must be true or false (got 'maybe')",
        f"NotFound: the policy file '{tmp_path}/nothere.yaml' does not exist; name another",
        f"InvalidInput: {tmp_path}/bad.yaml:1:33: pool 'new': kind must be append, upsert or aggregate (got 'x'); "
        "nothing was changed",
        "InvalidInput: a: no policy file: set path, or the variable LAKE_POLICY_FILE",
        "InvalidInput: a: dry_run must be true or false (got '')",
        "InvalidInput: a: dry_run must be true or false (got '')",
        {"created": 1, "changed": 0, "dropped": 1, "version": 3},
    ]
    assert [one.name for one in lake.pools()] == ["new"]


BUNDLED = """
import os
from types import SimpleNamespace
from airflow.dag_processing.dagbag import DagBag
os.environ |= {"LAKE": sys.argv[2], "LAKE_POLICY_FILE": sys.argv[3], "LAKE_ALLOWED_LAKES": sys.argv[5]}
os.environ["LAKE_ALLOWED_FILES"] = f"{sys.argv[6]} /none.yaml"
answer = []
for params in json.loads(sys.argv[4]):
    task = DagBag(dag_folder=sys.argv[1]).dags["lake_apply"].get_task("apply")
    run = SimpleNamespace(conf=params)
    given = task.dag.params.dump() | params
    context = {"dag": SimpleNamespace(folder="/"), "params": given, "dag_run": run}
    task.render_template_fields(context)
    try:
        answer.append(task.execute(context)["created"])
    except Exception as error:
        answer.append(f"{type(error).__name__}: {error}")
"""


def test_the_bundled_dag_applies_the_file_of_the_worker_unless_its_form_names_another(tmp_path: Path) -> None:
    lakes = [Lake.create(str(tmp_path / name)) for name in ("worker", "form")]
    for name in ("worker", "form"):
        (tmp_path / f"{name}.yaml").write_text(f"pools: {{{name}: {{key: k}}}}\n")
    form = {"lake": lakes[1].store.uri, "path": str(tmp_path / "form.yaml")}
    runs: list[dict[str, Any]] = [
        {"dry_run": True},
        {},
        form | {"dry_run": True},
        form,
        {"path": "/none.yaml"},
    ]
    said = ask(
        tmp_path,
        BUNDLED,
        str(ROOT / "dags" / "apply.py"),
        lakes[0].store.uri,
        str(tmp_path / "worker.yaml"),
        json.dumps(runs),
        form["lake"],
        form["path"],
    )
    assert said == [0, 1, 0, 1, "NotFound: the policy file '/none.yaml' does not exist; name another"]
    assert [[one.name for one in lake.pools()] for lake in lakes] == [["worker"], ["form"]]


W = "{{ params.w }}"


def test_a_template_that_gives_nothing_deletes_replaces_and_loads_nothing(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    pool = lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": ["Apple", "pear", "zebra"]}))
    file = tmp_path / "one.ndjson"
    file.write_text('{"k": "x"}\n')
    given: list[tuple[str, dict[str, Any]]] = [
        ("delete", {"where": W}),
        ("delete", {"low": W, "high": "q"}),
        ("delete", {"low": "a", "branch": W}),
        ("delete", {"low": "a", "token": W}),
        ("replace", {"files": str(file), "low": W}),
        ("replace", {"files": str(file), "low": "a", "high": W}),
        ("replace", {"files": str(file), "begin": "2026-01-01", "end": W}),
        ("replace", {"files": W, "low": "a"}),
        ("load", {"files": W, "on_spark": False}),
        ("load", {"files": str(file), "on_spark": False, "pool_name": W}),
        ("load", {"files": str(file), "on_spark": False, "lake": W}),
        ("delete", {"low": "a", "lake": W}),
        ("compact", {"spark": W}),
        ("compact", {"strategy": W}),
        ("delete", {"low": "a", "branch": ""}),
        ("wait", {"branch": ""}),
        ("wait", {"lake": W}),
        ("wait", {"after": W}),
    ]
    for native, value in ((False, ""), (False, None), (True, None), (True, "")):
        if not native and value is None:  # the text None: the name of nothing that is there
            cases = [one for one in given if not {"branch", "pool_name", "files"} & set(one[1])]
        else:
            cases = given
        said = ask(
            tmp_path, FILLED, lake.store.uri, json.dumps([(kind, native, value, how) for kind, how in cases])
        )
        assert [text for text in said if " is empty after its template was filled in" not in str(text)] == []
    assert lake.pool("p").at().to_table()["k"].to_pylist() == ["Apple", "pear", "zebra"]


def test_a_bound_of_a_missing_or_endless_value_deletes_nothing(tmp_path: Path) -> None:
    """As a key, NaN and infinity come after all numbers, and the text NaT after all dates."""
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1.0, 5.0]}))
    values = [float("nan"), float("inf"), "nan", "NaT", "None"]
    cases = [
        ("delete", native, value, {"low": "3", "high": W}) for native in (True, False) for value in values
    ]
    cases += [("replace", False, "", {"files": "x", "low": "3", "pool_name": None})]
    cases += [
        ("load", True, None, {"files": "x", "on_spark": False, name: W}) for name in ("partitions", "options")
    ]
    cases += [("load", True, [], {"files": "x", "on_spark": False, "partitions": W})]
    said = ask(tmp_path, FILLED, lake.store.uri, json.dumps(cases))
    wanted = " is empty after its template was filled in"
    assert [text for text in said[:-2] if wanted not in str(text)] == []
    assert said[-2] == "InvalidInput: a: options must be texts by name, as {'a': 'b'} (got None)"
    assert wanted in said[-1]
    assert ask(
        tmp_path, FILLED, lake.store.uri, json.dumps([("delete", False, "", {"low": "3", "high": "inf"})])
    ) == [2]


def test_a_task_without_files_fails_is_skipped_or_empties_its_range_as_it_says(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    pool = lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": ["a", "b", "c"]}))
    (tmp_path / "one.ndjson").write_text('{"k": "b"}\n')
    one, none, gone = (str(tmp_path / name) for name in ("one.*", "none.*", "gone/none.csv"))
    said = ask(
        tmp_path,
        FILLED,
        lake.store.uri,
        json.dumps(
            [
                ("replace", False, "", {"files": none, "low": "b"}),
                ("replace", False, "", {"files": [none, gone], "low": "b", "missing": "skip"}),
                ("load", False, "", {"files": gone, "on_spark": False, "missing": "skip"}),
                (
                    "replace",
                    False,
                    "",
                    {"files": [none, one, gone], "low": "b", "high": "c", "missing": "empty"},
                ),
                ("replace", False, "", {"files": [none, gone], "low": "c", "missing": "empty", "token": ""}),
                ("replace", False, "", {"files": none, "low": "b", "missing": "empty", "pool_name": "q"}),
            ]
        ),
    )
    assert said[0].startswith(f"NotFound: no file matches {none!r}")
    assert said[1:3] == ["AirflowSkipException: p: there are no files, and the task says missing='skip'"] * 2
    assert said[3:5] == [2, 3]
    assert said[5].startswith("NotFound: pool 'q' does not exist")
    assert Lake.open(lake.store.uri).pool("p").at().to_table()["k"].to_pylist() == ["a", "b"]


def test_a_replace_whose_pool_is_a_template_has_one_event(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("p", key="k").branch().append(pa.table({"k": ["a", "b"]}))
    events = ask(tmp_path, TEMPLATED, lake.store.uri)
    assert [[version for _, version in of_task] for of_task in events] == [[2], [3]]
    assert {uri.rpartition("/")[2] for of_task in events for uri, _ in of_task} == {"p"}


def test_a_list_of_files_that_turns_out_to_be_empty_is_as_files_that_are_missing(tmp_path: Path) -> None:
    """Only a DAG that leaves `files` out says that records are to be removed."""
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("p", key="k").branch().append(pa.table({"k": ["a", "b", "c"]}))
    replace, load = {"files": W, "low": "b"}, {"files": W, "on_spark": False}
    cases: list[tuple[str, bool, Any, dict[str, Any]]] = [
        ("replace", True, [], replace),
        ("replace", True, [], {"files": W, "begin": "2026-01-01", "end": "2026-01-02"}),
        ("replace", False, "", replace | {"files": []}),
        ("load", True, [], load),
        ("replace", True, [], replace | {"missing": "skip"}),
        ("load", True, [], load | {"missing": "skip"}),
        ("replace", True, [], {"files": W, "low": "c", "missing": "empty", "token": ""}),
        ("replace", False, "", {"low": "b", "token": ""}),
    ]
    said = ask(tmp_path, FILLED, lake.store.uri, json.dumps(cases))
    assert all(text.startswith("NotFound: a: files is empty: there is nothing to read") for text in said[:4])
    assert said[4:6] == ["AirflowSkipException: p: there are no files, and the task says missing='skip'"] * 2
    assert said[6:] == [2, 3]
    assert Lake.open(lake.store.uri).pool("p").at().to_table()["k"].to_pylist() == ["a"]


@pytest.mark.parametrize("missing", ["fail", "skip"])
def test_a_task_whose_files_were_moved_away_after_it_had_committed_them_is_done(
    tmp_path: Path, missing: str
) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("p", key="k").branch().append(pa.table({"k": ["a"]}))
    file = tmp_path / "one.ndjson"
    load = ("load", False, "", {"files": str(file), "on_spark": False, "missing": missing})
    replace = ("replace", False, "", {"files": str(file), "low": "b", "missing": missing, "token": "r"})
    for there in (True, False):
        if there:
            file.write_text('{"k": "b"}\n')
        else:
            file.unlink()
        assert ask(tmp_path, FILLED, lake.store.uri, json.dumps([load, replace])) == [2, 3]
    fresh = ask(
        tmp_path, FILLED, lake.store.uri, json.dumps([("load", False, "", {**load[3], "token": "t"})])
    )
    assert fresh[0].startswith("NotFound: " if missing == "fail" else "AirflowSkipException: ")
    assert Lake.open(lake.store.uri).pool("p").at().to_table()["k"].to_pylist() == ["a", "b"]


def test_a_sensor_that_is_tried_again_waits_from_where_its_first_try_began(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1]}))
    lake.create_pool("q", key="k")
    *tries, waits, event, purged, away = ask(tmp_path, WAITED, lake.store.uri)
    assert (purged, away) == (3, "waits on"), (
        "what was purged unseen is new; a store that is away may come back"
    )
    assert tries == [1, 1, 0, 2]
    assert (waits, event["pool"], event["version"], event["entries"]) == ("waits", "q", 7, 1), "in the worker"


def test_numbers_of_native_templates_are_taken_as_texts(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1, 2, 3]}))
    file = tmp_path / "one.ndjson"
    file.write_text('{"k": 20}\n')
    said = ask(
        tmp_path,
        FILLED,
        lake.store.uri,
        json.dumps(
            [
                ("load", True, "20240101", {"files": str(file), "on_spark": False, "token": W}),
                ("delete", True, 2, {"low": W, "high": "3", "token": W}),
                ("delete", True, ["k = 1"], {"where": W}),
                ("load", True, '{"csv.header"}', {"files": str(file), "on_spark": False, "options": W}),
            ]
        ),
    )
    assert said[:2] == [2, 3]
    assert said[2] == "InvalidInput: a: where must be a text (got ['k = 1'])"
    assert said[3].startswith("InvalidInput: a: options must be texts by name")
    assert [t.token for _, t in lake.pool("p").log()] == ["2", "20240101", ""]


def test_a_task_whose_dag_says_an_empty_token_commits_each_time(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("p", key="k")
    file = tmp_path / "one.ndjson"
    file.write_text('{"k": 1}\n')
    load = {"files": str(file), "on_spark": False, "token": ""}
    replace = {"files": str(file), "low": "1", "token": ""}
    delete = {"low": "1", "token": ""}
    tasks = [
        (kind, native, None, how) for kind, how in (("load", load), ("replace", replace)) for native in (0, 1)
    ]
    tasks += [("load", False, None, load), ("delete", False, None, delete)]
    assert ask(tmp_path, FILLED, lake.store.uri, json.dumps(tasks)) == [1, 2, 3, 4, 5, 6]
    assert {t.token for _, t in lake.pool("p").log()} == {""}


def test_a_mapped_load_that_is_cleared_loads_each_file_once_whatever_its_index_is_now(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("p", key="k")
    for name in "abc":
        (tmp_path / f"{name}.ndjson").write_text(json.dumps({"k": name}) + "\n")

    def mapped(names: str) -> list[Any]:
        how = [{"files": str(tmp_path / f"{name}.ndjson"), "on_spark": False} for name in names]
        return [("load", False, None, one, index) for index, one in enumerate(how)]

    said = ask(tmp_path, FILLED, lake.store.uri, json.dumps(mapped("bc") + mapped("abc")))
    assert said == [1, 2, 3, 1, 2]
    assert lake.pool("p").at().to_table()["k"].to_pylist() == ["a", "b", "c"]


def test_an_operator_that_does_an_agents_work_is_a_job_of_that_agent(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    pool = lake.create_pool("p", key="k", settings={"expire.records": "1"})
    for k in range(12):
        pool.branch().append(pa.table({"k": [k, 100]}))
    compacted, saved, retained, failed = ask(tmp_path, UPKEPT, lake.store.uri)
    assert (compacted["version"], saved["checkpoint"], retained["version"]) == (13, 13, None)
    jobs = list_jobs(Lake.open(lake.store.uri))[::-1]
    assert [(job.agent, job.pool, job.state) for job in jobs] == [
        ("compact", "p", "done"),
        ("checkpoint", "p", "done"),
        ("retention", "p", "done"),
        ("compact", "none", "failed"),
    ]
    of_compact = jobs[0].figures
    assert (of_compact["depth_before"], of_compact["depth_after"]) == (12, 1)
    assert (of_compact["objects_before"], of_compact["objects_after"]) == (12, 1)
    assert (
        of_compact["size_before"]
        == of_compact["size_in"]
        > of_compact["size_after"]
        == of_compact["size_out"]
    )
    assert jobs[3].error == failed


def test_an_assertion_holds_for_truth_and_numbers_and_an_answer_is_bounded(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    said = ask(tmp_path, QUERIED, lake.store.uri)
    assert said[:3] == ["held"] * 3
    assert [text.partition(": does not hold")[0] for text in said[3:9]] == ["InvalidInput: a"] * 6
    assert said[9] == "InvalidInput: a: the answer has more than 1,048,576 bytes as JSON; select less"
    assert len(said[10]) < 3_000
    assert said[11] == [{"k": "12345678901234567.89", "p": 1.5, "d": 0.1}], "a float is another number"
