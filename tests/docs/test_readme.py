"""The first result in README.md: its lines run in a shell as a reader types them, and print what the page shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.documentation import examples
from tests.support.repository import ROOT


def test_the_first_result_is_what_the_readme_shows(tmp_path: Path) -> None:
    (example,) = examples("README.md", "sh")
    assert "LAKE=/tmp/my-lake" in example.code
    (commands := tmp_path / "bin").mkdir()
    (commands / "lake").write_text(
        f"#!{sys.executable}\nimport sys\nfrom log_lake.cli.main import main\nsys.exit(main())\n"
    )
    (commands / "lake").chmod(0o755)
    ran = subprocess.run(
        [
            shutil.which("bash") or "sh",
            "-e",
            "-c",
            example.code.replace("/tmp/my-lake", f"{tmp_path}/my-lake"),
        ],
        cwd=tmp_path,
        env={"PATH": f"{commands}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    (output,) = examples("README.md", "text")
    assert ran.stdout == output.code


def test_links_between_the_pages_lead_to_files() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    missing = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
        if not target.startswith("http") and not (page.parent / target).exists()
    ]
    assert not missing


def test_every_page_of_the_documentation_is_in_its_index() -> None:
    index = (ROOT / "docs/README.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {page for page in pages if f"]({page})" not in index} == set()


def test_every_decision_is_in_the_index_of_decisions() -> None:
    index = (ROOT / "docs/decisions/README.md").read_text()
    decisions = {page.name for page in (ROOT / "docs/decisions").glob("[0-9]*.md")}
    assert {page for page in decisions if f"]({page})" not in index} == set()


def test_a_heading_of_the_index_has_at_most_15_decisions_and_the_first_ten() -> None:
    index = (ROOT / "docs/decisions/README.md").read_text()
    counts = {
        part.partition("\n")[0]: len(re.findall(r"^\| \d+ \|", part, re.MULTILINE))
        for part in index.split("\n## ")[1:]
    }
    assert counts["Ten to read first"] == 10
    assert {heading for heading, count in counts.items() if count > 15} == set()


def test_each_decision_has_a_status_and_a_date() -> None:
    pages = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    stated = re.compile(
        r"# .+\n\nStatus: (?:accepted|(?:superseded|changed|continued) by \[\d+\].*)\. Date: 20\d\d-\d\d-\d\d\.\n"
    )
    assert [page.name for page in pages if not stated.match(page.read_text())] == []
