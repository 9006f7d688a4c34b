"""Prints a line for each folder of tests while `make check` and `make test` run; the line ends with the time it
took.

A plugin of pytest (`-p tests.support.parts`), for runs that take minutes; without it pytest says what it always
says.  A failure is named at once and shown whole at the end, as usual.  A part that has printed nothing for
`SILENCE` seconds prints which test is running, so a slow machine and a test that hangs look different.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import partial

import pytest
from _pytest.terminal import TerminalReporter

SILENCE = float(os.environ.get("LAKE_TEST_SILENCE", "50"))
"""After how many seconds without output a part prints where it is: less than a minute."""

STDOUT = os.dup(1)
"""The file to which pytest prints. During a test pytest catches what is written to file descriptor 1, so this is a
copy from before."""

DEPTH = 2
"""How many folders of a test's path name its part; with 2 it is tests/unit."""
Status = str | tuple[str, Mapping[str, bool]]


@dataclass(eq=False)  # pytest keeps plugins in sets
class Parts:
    """The counts and times of the part that runs. A part begins with its first test, and ends before the first
    test of another one."""

    write: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    name: str | None = None
    line_is_open: bool = False
    begun: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    at: str = ""
    spoke: float = 0.0
    printing: threading.RLock = field(default_factory=threading.RLock)
    ended: threading.Event = field(default_factory=threading.Event)

    def pytest_sessionstart(self) -> None:
        threading.Thread(target=self.keep_speaking, name="parts", daemon=True).start()

    def keep_speaking(self) -> None:
        """Prints where the part is whenever it was silent for long, until the session ends."""
        while not self.ended.wait(SILENCE / 5):
            with self.printing:
                now = self.clock()
                if self.name is not None and now - self.spoke >= SILENCE:
                    done = sum(self.counts.values())
                    line = f"still: {self.at}, after {done} tests, {now - self.begun:.0f} s\n"
                    os.write(STDOUT, (f"\n{line}" if self.line_is_open else line).encode())
                    self.line_is_open, self.spoke = False, now

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        with self.printing:
            self.at = nodeid
            name = "/".join(nodeid.split("/")[:DEPTH])
            if name != self.name:
                self.end()
                self.name, self.begun = name, self.clock()
                self.open_line()

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> Generator[None, tuple[str, str, Status], tuple[str, str, Status]]:
        """Counts the result of a test, and removes the letter that pytest would print for it."""
        outcome, letter, status = yield
        if letter and self.name is not None:  # pytest asks again for its summary
            with self.printing:
                self.counts[outcome] += 1
                if outcome in {"failed", "error"}:
                    begin = "\n" if self.line_is_open else ""
                    self.write(f"{begin}{outcome}: {report.nodeid}\n")
                    self.line_is_open, self.spoke = False, self.clock()
        return outcome, "", status

    def pytest_sessionfinish(self) -> None:
        self.ended.set()
        with self.printing:
            self.end()

    def end(self) -> None:
        """Prints the rest of the line of the part that ran."""
        if self.name is None:
            return
        if not self.line_is_open:
            self.open_line()
        said = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.counts.items()))
        self.write(f"{said:28} {self.clock() - self.begun:5.0f} s\n")
        self.line_is_open = False
        self.name = None
        self.counts.clear()

    def open_line(self) -> None:
        self.write(f"{self.name:18} ")
        self.line_is_open, self.spoke = True, self.clock()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    reporter: TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        config.pluginmanager.register(Parts(partial(reporter.write, flush=True)), "parts-of-the-tests")
