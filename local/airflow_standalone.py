"""Airflow's own `standalone`, with two things changed.

It starts the scheduler and the triggerer without their log servers.  These would listen on every interface of the
machine, even if the API listens on one, and on one machine the API reads the log files itself.  And it ends, with
status 1, when one of its components ends; the original would go on without it.

Run by airflow_service as `python -m local.airflow_standalone`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

from airflow.__main__ import main as airflow
from airflow.cli.commands import standalone_command

SERVING_LOGS = ("scheduler", "triggerer")
_lost: list[str] = []
_one_at_a_time = threading.Lock()


class Component(standalone_command.SubCommand):  # type: ignore[misc]  # airflow is not typed
    """A component of standalone whose end is noticed."""

    stopping = False

    def __init__(self, parent: Any, name: str, command: list[str], env: dict[str, str]) -> None:
        quiet = ["--skip-serve-logs"] if name in SERVING_LOGS else []
        super().__init__(parent, name, [*command, *quiet], env)

    def run(self) -> None:
        super().run()  # until the component closes its output
        with _one_at_a_time:
            if self.stopping or _lost:
                return
            _lost.append(self.name)
        self.parent.print_output("standalone", f"the {self.name} ended by itself; stopping the others")
        os.kill(os.getpid(), signal.SIGINT)

    def stop(self) -> None:
        self.stopping = True
        super().stop()


def main() -> int:
    standalone_command.SubCommand = Component
    sys.argv = ["airflow", "standalone"]
    airflow()
    return 1 if _lost else 0


if __name__ == "__main__":
    sys.exit(main())
