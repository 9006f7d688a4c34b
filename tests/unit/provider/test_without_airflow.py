"""The pure modules of the provider load without Airflow, which configures logging when it is imported."""

from __future__ import annotations

import subprocess
import sys

PURE = (
    "assets", "connection", "groups.config", "groups.pack", "groups.tasks", "provider", "reach", "triggers.interest"
)  # fmt: skip


def test_the_pure_modules_import_no_airflow() -> None:
    program = "\n".join(
        [*(f"import airflow_lake.{name}" for name in PURE), "import sys", "print('airflow' in sys.modules)"]
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
