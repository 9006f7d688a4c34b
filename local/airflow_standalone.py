"""Airflow's own `standalone`, with two changes.

It starts the scheduler and the triggerer without their log servers. These would listen on every interface of
the machine, even if the API listens on one only; on a single machine the API reads the log files itself.  And
if a component ends by itself, it starts the component again, a bounded number of times; the original would
continue without it.  If a component ends too often, it stops the others and ends with status 1.

Run by airflow_service as `python -m local.airflow_standalone`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from airflow.__main__ import main as airflow
from airflow.cli.commands import standalone_command

MOST = 5
"""The most restarts of one component within `WINDOW`. On a busy machine SQLite's "database is locked" ends a
scheduler once in a while. A fault that ends it each time does so within seconds, and a restart does not help."""
WINDOW = 3_600.0
"""Seconds within which restarts are counted."""
PAUSES = (1.0, 5.0, 15.0, 30.0, 60.0)
"""Seconds before each restart within the window: a machine that is too busy needs time, not more processes."""


def pause_before(ends: Sequence[float], *, now: float) -> float | None:
    """Returns how many seconds to wait before starting a component again; `ends` are the times at which it ended.

    The last of them is now. Returns None if it ended too often and must not be started again.
    """
    recent = sum(now - end < WINDOW for end in ends)
    return None if recent > MOST else PAUSES[max(recent, 1) - 1]


SERVING_LOGS = ("scheduler", "triggerer")
LEFT_SECONDS = 10.0
"""How long the processes that an ended component left behind may take to end, after each signal."""
_lost: list[str] = []
_one_at_a_time = threading.Lock()


class Component(standalone_command.SubCommand):  # type: ignore[misc]  # airflow is not typed
    """A component of standalone that is started again if it ends by itself."""

    def __init__(self, parent: Any, name: str, command: list[str], env: dict[str, str]) -> None:
        quiet = ["--skip-serve-logs"] if name in SERVING_LOGS else []
        super().__init__(parent, name, [*command, *quiet], env)
        self.stopping = threading.Event()

    def run(self) -> None:
        ends: list[float] = []
        while not self.stopping.is_set():  # bounded by `pause_before`
            status = self._run_once()
            ends.append(time.monotonic())
            if self.stopping.is_set():
                return
            pause = pause_before(ends, now=ends[-1])
            if pause is None:
                self._give_up(status)
                return
            self._say(f"ended by itself with status {status}; it is started again in {pause:g} s")
            self.stopping.wait(pause)

    def _run_once(self) -> int:
        """Runs the component until it and the processes that it left behind have ended; returns its exit status.

        A scheduler that is killed leaves workers behind, which hold its output open and do not end by
        themselves.
        """
        command = ["airflow", *self.command]
        pipe: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.process = subprocess.Popen(command, env=self.env, start_new_session=True, **pipe)
        reading = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        reading.start()
        status = int(self.process.wait())
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):  # it left nothing
                os.killpg(self.process.pid, number)
            reading.join(LEFT_SECONDS)
            if not reading.is_alive():
                break
        return status

    def _read(self, output: Any) -> None:
        for line in output:
            self.parent.output_queue.append((self.name, line))

    def _say(self, what: str) -> None:
        self.parent.print_output("standalone", f"the {self.name} {what}")

    def _give_up(self, status: int) -> None:
        """Stops all other components, because the service is useless without this one."""
        with _one_at_a_time:
            if _lost:
                return
            _lost.append(self.name)
        self._say(
            f"ended by itself with status {status}, more than {MOST} times in an hour; stopping the others"
        )
        os.kill(os.getpid(), signal.SIGINT)

    def stop(self) -> None:
        self.stopping.set()
        super().stop()


def main() -> int:
    standalone_command.SubCommand = Component
    sys.argv = ["airflow", "standalone"]
    airflow()
    return 1 if _lost else 0


if __name__ == "__main__":
    sys.exit(main())
