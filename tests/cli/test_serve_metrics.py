"""`/metrics` of a real `lake serve`, read by Prometheus' own parser: who may ask, and what a broken lake hides."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")
pytest.importorskip("prometheus_client")

from prometheus_client.parser import text_string_to_metric_families

from lake_core import naming
from log_lake.lake import Lake
from tests.support.served_catalog import ServedCatalog, serving_catalog

TOKEN = "0123456789-abcdefgh"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCatalog]:
    folder = tmp_path_factory.mktemp("metrics")
    lake, other = Lake.create(str(folder / "lake")), Lake.create(str(folder / "other"))
    for name in ("logs", "a*..%2Fü.<b>", "broken"):
        branch = lake.create_pool(name, key="k").branch()
        branch.append(pa.table({"k": [1, 2, 3]}))
        branch.append(pa.table({"k": [2, 4]}))
    entry = naming.entry(naming.pool_journal(lake.pool("broken").config.id), 2)
    lake.store.put(entry, b"no entry")
    token = folder / "token"
    token.write_text(TOKEN)
    words = ("--also", f"other={other.store.uri}", "--token-file", str(token))
    with serving_catalog(lake.store.uri, *words) as served:
        for one in other.store.list(""):
            other.store.delete(one.name)
        yield served


def test_prometheus_reads_the_metrics_of_all_lakes(served: ServedCatalog) -> None:
    status, body = served.ask("/metrics", Authorization=f"Bearer {TOKEN}")
    assert status == 200
    values = {
        (
            one.name,
            *(one.labels[label] for label in ("lake", "pool", "kind") if label in one.labels),
        ): one.value
        for family in text_string_to_metric_families(body.decode())
        for one in family.samples
    }
    assert (values["lake_up", "lake"], values["lake_up", "other"]) == (1, 0)
    for pool in ("logs", "a*..%2Fü.<b>"):
        assert values["lake_pool_depth", "lake", pool] == 2
        assert values["lake_pool_entries_total", "lake", pool] == 2
    assert values["lake_pool_readable", "lake", "broken"] == 0
    assert ("lake_pool_depth", "lake", "broken") not in values
    assert values["lake_server_requests_total", "read"] > 0


@pytest.mark.parametrize(
    ("method", "token", "status"),
    [("GET", "", 401), ("GET", "wrong-wrong-wrong", 401), ("HEAD", TOKEN, 200), ("POST", TOKEN, 406)],
)
def test_only_a_reader_with_the_token_may_ask(
    served: ServedCatalog, method: str, token: str, status: int
) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    found, body = served.ask("/metrics", method=method, **headers)
    assert found == status
    assert b"lake_up" not in body


def test_the_catalog_answers_beside_the_metrics(served: ServedCatalog) -> None:
    assert served.ask("/v1/config", Authorization=f"Bearer {TOKEN}")[0] == 200
    assert served.ask("/metrics/more", Authorization=f"Bearer {TOKEN}")[0] == 404
