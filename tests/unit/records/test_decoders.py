"""Types are made ready for decoding by one thread at a time."""

from __future__ import annotations

import ast
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import msgspec

from lake_core.records.decoders import JSON
from tests.support.repository import ROOT

PACKAGES = ("lake_core", "log_lake", "pyspark_lake", "spark_apps", "airflow_lake")
MAKES = ("msgspec.json.Decoder", "msgspec.msgpack.Decoder")
DECODES = ("msgspec.json.decode", "msgspec.msgpack.decode", "msgspec.convert")


def test_threads_that_decode_a_type_for_the_first_time_find_it_whole() -> None:
    """Otherwise the process ends here with a segmentation fault."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as threads:
            for number in range(50):
                inner = msgspec.defstruct(f"Inner{number}", [("a", int), ("b", str, "")])
                outer = msgspec.defstruct(f"Outer{number}", [("one", inner), ("more", dict[str, str])])
                begin = Barrier(6)

                def decode(outer: type = outer, begin: Barrier = begin) -> object:
                    begin.wait()
                    return JSON.of(outer).decode(b'{"one": {"a": 1}, "more": {"x": "y"}}')

                assert len({repr(one.result()) for one in [threads.submit(decode) for _ in range(6)]}) == 1
    finally:
        sys.setswitchinterval(before)


def test_no_function_decodes_by_a_type_or_makes_a_decoder_of_its_own() -> None:
    found = []
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        if path.name == "decoders.py":
            continue
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            for call in ast.walk(function):
                if not isinstance(call, ast.Call):
                    continue
                name = ast.unparse(call.func)
                by_type = name in DECODES and (
                    len(call.args) > 1 or any(k.arg == "type" for k in call.keywords)
                )
                if by_type or name in MAKES:
                    found.append(f"{path.relative_to(ROOT)}:{call.lineno}: {name}")
    assert found == []
