"""The dashboard asks for metrics and labels that there are, in queries that Prometheus can read."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client")

from lake_core.store.meter import Counts
from log_lake.lake import Lake
from log_lake.metrics.families import SeenLake, families
from log_lake.metrics.job_sums import AgentSums
from log_lake.metrics.pool_watch import PoolWatch
from log_lake.stores.memory import MemoryStore
from tests.support.repository import ROOT

FILE = ROOT / "deploy/grafana/log-lake.json"
BOARD: dict[str, Any] = json.loads(FILE.read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]


def there() -> dict[str, set[str]]:
    """By name, the labels of all metrics of a lake."""
    lake = Lake.create_on(MemoryStore("memory://board"))
    lake.create_pool("logs", key="k")
    spent = Counts(seconds={"load.read": 1.0})
    seen = SeenLake("x", PoolWatch().look(lake), {"compact": AgentSums(cost=spent)})
    labels: dict[str, set[str]] = {}
    for family in families([seen], spent):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


def test_each_query_asks_for_metrics_and_labels_that_there_are() -> None:
    labels = there()
    for query in QUERIES:
        names = re.findall(r"\blake_[a-z_]+", query)
        assert names
        assert set(names) <= labels.keys(), query
        has = set.intersection(*(labels[name] for name in names))
        selected = re.findall(r"[{,]([a-z]+)=~?\"", query)
        grouped = [one.strip() for group in re.findall(r"by \(([^)]*)\)", query) for one in group.split(",")]
        assert set(selected) | set(grouped) <= has, query


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in BOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_prometheus_can_read_each_query(tmp_path: Path, promtool: str) -> None:
    def without_variables(query: str) -> str:
        query = re.sub(r"\$(lake|pool)\b", ".*", query)
        return query.replace("$__rate_interval", "5m")

    rules = [
        {"record": f"q{number}", "expr": without_variables(query)} for number, query in enumerate(QUERIES)
    ]
    file = tmp_path / "rules.json"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = subprocess.run(
        [promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"SUCCESS: {len(QUERIES)} rules found" in checked.stdout
