"""Airflow and Spark Connect on this machine, started, used and stopped together.

    with Services(run_dir=..., lake=...) as s:
        s.api.trigger("compact", conf={...})
        SparkSession.builder.remote(s.spark_remote)

The end of the block stops what it started, however the block ends.  If a service already runs in this run
directory with the same settings, the block uses it and leaves it running.  With `detached=True` and `start()`
the services stay (`make up`) until `stop_all(run_dir)` (`make down`).

The environment of Airflow's tasks has LAKE (the lake), LAKE_SPARK_REMOTE (the address of Spark Connect and of
the one session that the tasks share), and the variables in the argument `env`.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from local import airflow_service, credentials, java, ports, processes, record, spark_service
from local.api import AirflowApi
from local.environ import inherited
from local.errors import LocalError
from local.progress import Display, display
from local.record import Started

ROOT = Path(__file__).resolve().parents[1]
RUN_DIR = ROOT / ".run"
DEMO_LAKE = Path("demo", "kept", "lake")
"""Where `make demo` keeps its lake, below RUN_DIR."""
NAMES = (airflow_service.NAME, spark_service.NAME)
POLL_SECONDS = 0.25
LOCK_SECONDS = 900.0
AIRFLOW_COMMAND_SECONDS = 300.0
TAIL_LINES = 25


class Services:
    """The services of one run directory, with the caller's settings."""

    def __init__(
        self,
        *,
        run_dir: Path = RUN_DIR,
        lake: str | None = None,
        env: Mapping[str, str] | None = None,
        airflow: bool = True,
        spark: bool = True,
        dags: Path = ROOT / "dags",
        plugins: Path = ROOT / "plugins",
        spark_conf: Mapping[str, str] | None = None,
        detached: bool = False,
        silent: bool = False,
    ) -> None:
        if not (airflow or spark):
            raise ValueError("airflow and spark are both False: ask for at least one")
        self.run_dir = run_dir.resolve()
        self.lake = absolute(lake) if lake else str(self.run_dir / "lake")
        self._env = dict(env or {})
        self._wanted = [name for name, is_on in zip(NAMES, (airflow, spark), strict=True) if is_on]
        self._dags = dags.resolve()
        self._plugins = plugins.resolve()
        self._spark_conf = dict(spark_conf or {})
        self._detached = detached
        self._silent = silent
        self._up: dict[str, Started] = {}
        self._ours: dict[str, subprocess.Popen[bytes]] = {}
        self._credentials: credentials.Credentials | None = None
        self._java: java.Java | None = None
        self._api: AirflowApi | None = None

    # --- life

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> list[str]:
        """Starts the services that are not up yet, until all are healthy; returns the names of the started
        ones."""
        self.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._credentials = credentials.load_or_make(self.run_dir / "credentials")
        with display(silent=self._silent) as shown, _only_one(self.run_dir / "lock"):
            try:
                self._launch(shown)
                self._await_health(shown)
            except BaseException:  # Ctrl-C included: nothing that was started is left
                self._stop(shown)
                raise
        return list(self._ours)

    def stop(self) -> None:
        """Stops only the services that this object started."""
        if self._ours:
            with display(silent=self._silent) as shown:
                self._stop(shown)

    def _stop(self, shown: Display) -> None:
        self._api = None
        # Airflow first: its tasks use Spark.
        for name in [name for name in NAMES if name in self._ours]:
            shown.begin(name, "stopping")
            started, child = self._up[name], self._ours[name]
            processes.stop(started.keeper, mark=started.mark, child=child)
            record_path(self.run_dir, name).unlink(missing_ok=True)
            del self._ours[name], self._up[name]
            shown.end(name, "stopped")

    # --- what is up

    @property
    def password(self) -> str:
        """The password of `user`."""
        return self._secrets.password

    @property
    def user(self) -> str:
        return self._secrets.user

    @property
    def airflow_url(self) -> str:
        return airflow_service.url(self._started(airflow_service.NAME).ports["api"])

    @property
    def spark_remote(self) -> str:
        """The address for SparkSession.builder.remote, token included."""
        port = self._started(spark_service.NAME).ports["connect"]
        return spark_service.remote(port, token=self._secrets.spark_token)

    @property
    def api(self) -> AirflowApi:
        """The client of Airflow's REST API, as the administrator; always the same one, so that it logs in
        once."""
        started = self._started(airflow_service.NAME)
        if self._api is None:
            self._api = AirflowApi(
                self.airflow_url, user=self.user, password=self.password, check=partial(check_alive, started)
            )
        return self._api

    @property
    def environ(self) -> dict[str, str]:
        """The environment of Airflow's tasks; an `airflow` command in it works on this Airflow."""
        return environ_of(self._started(airflow_service.NAME))

    def airflow(self, args: Sequence[str], *, seconds: float = AIRFLOW_COMMAND_SECONDS) -> str:
        """Runs an `airflow` command, which takes about five seconds, and returns its standard output."""
        self._started(airflow_service.NAME)
        command = [sys.executable, "-m", "airflow", *args]
        try:
            done = subprocess.run(
                command, env=self.environ, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            raise LocalError(f"airflow {' '.join(args)}: not done after {seconds:.0f} s") from None
        if done.returncode != 0:
            output = "\n".join((done.stdout + done.stderr).splitlines()[-TAIL_LINES:])
            raise LocalError(f"airflow {' '.join(args)}: status {done.returncode}\n{output}")
        return done.stdout

    def _started(self, name: str) -> Started:
        if name not in self._up:
            raise LocalError(f"{name} is not up: start it first (`make up`)")
        return self._up[name]

    @property
    def _secrets(self) -> credentials.Credentials:
        if self._credentials is None:
            raise LocalError("the services are not up: start them first (`make up`)")
        return self._credentials

    # --- starting

    def _launch(self, shown: Display) -> None:
        up: dict[str, Started] = {}
        for name in NAMES:
            started_before = running(self.run_dir, name)
            if (
                started_before is not None
                and name in self._wanted
                and started_before.settings != self._settings(name)
            ):
                raise LocalError(
                    f"{name} is up in {self.run_dir} with other settings (its lake is {started_before.lake}): "
                    "stop it first (`make down`)"
                )
            if started_before is not None:
                up[name] = started_before
            elif (left := record.read(record_path(self.run_dir, name))) is not None:
                processes.stop(left.keeper, mark=left.mark)  # what a killed keeper left
        missing = [name for name in self._wanted if name not in up]
        if spark_service.NAME in self._wanted:
            self._java = java.provide(os.environ, say=shown.note)
        else:  # a DAG may want one; Airflow itself does not
            self._java = java.find(os.environ)
        chosen = {name: dict(started.ports) for name, started in up.items()}
        for name in missing:
            chosen[name] = self._choose_ports(
                name,
                shown,
                # under "spark" Airflow keeps the port of the other service, not one of its own
                taken=[p for s in chosen.values() for what, p in s.items() if what != "spark"],
            )
        if airflow_service.NAME in up and spark_service.NAME in missing:
            told = up[airflow_service.NAME].ports.get("spark")
            if told != chosen[spark_service.NAME]["connect"]:
                raise LocalError(
                    f"airflow is up and looks for Spark on port {told}: stop it first (`make down`)"
                )
        for name in self._wanted:
            if name in up:
                self._up[name] = up[name]
                shown.begin(name, "up already")
            else:
                self._launch_one(name, chosen)
                shown.begin(name, f"starting; log: {self._up[name].log}")

    def _choose_ports(self, name: str, shown: Display, *, taken: Sequence[int]) -> dict[str, int]:
        if name == airflow_service.NAME:
            usual = {"api": airflow_service.USUAL_PORT}
        else:
            usual = {"connect": spark_service.USUAL_PORT, "ui": spark_service.USUAL_UI_PORT}
        chosen: dict[str, int] = {}
        for use, port in usual.items():
            chosen[use] = ports.choose(port, what=name, taken=[*taken, *chosen.values()])
            if chosen[use] != port:
                shown.note(f"{name}: port {port} is taken; its {use} port is {chosen[use]}")
        return chosen

    def _launch_one(self, name: str, chosen: Mapping[str, Mapping[str, int]]) -> None:
        folder = self.run_dir / name
        folder.mkdir(mode=0o700, exist_ok=True)
        log = self.run_dir / f"{name}.log"
        used = dict(chosen[name])
        if name == airflow_service.NAME:
            command: Sequence[str] = airflow_service.COMMAND
            environ = self._airflow_environ(chosen)
            if spark_service.NAME in chosen:
                used["spark"] = chosen[spark_service.NAME]["connect"]
        else:
            command = spark_service.command(
                port=used["connect"], ui_port=used["ui"], folder=folder, conf=self._spark_conf
            )
            environ = self._spark_environ()
        mark = mark_of(self.run_dir, name)
        child, keeper = processes.launch(
            command, environ=environ, mark=mark, log=log, folder=folder, detached=self._detached
        )
        started = Started(
            service=name,
            keeper=keeper,
            mark=mark,
            log=str(log),
            ports=used,
            lake=self.lake,
            settings=self._settings(name),
        )
        self._ours[name] = child
        self._up[name] = started
        record.write(record_path(self.run_dir, name), started)

    def _airflow_environ(self, chosen: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
        settings = airflow_service.settings(
            home=self.run_dir / airflow_service.NAME,
            dags=self._dags,
            plugins=self._plugins,
            port=chosen[airflow_service.NAME]["api"],
            credentials=self._secrets,
        )
        spark = {}
        if spark_service.NAME in chosen:
            port = chosen[spark_service.NAME]["connect"]
            shared = uuid.uuid5(uuid.NAMESPACE_URL, mark_of(self.run_dir, spark_service.NAME))
            spark["LAKE_SPARK_REMOTE"] = spark_service.remote(
                port, token=self._secrets.spark_token, session=str(shared)
            )
        if self._java is not None:
            spark["JAVA_HOME"] = str(self._java.home)
        kept = inherited(os.environ, prefix=Path(sys.prefix))
        path = [str(airflow_service.OWN_SETTINGS), kept.get("PYTHONPATH", "")]
        return {
            **kept,
            **settings,
            "PYTHONPATH": os.pathsep.join(part for part in path if part),
            **spark,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": ports.LOOPBACK,
            "LAKE": self.lake,
            **self._env,
        }

    def _spark_environ(self) -> dict[str, str]:
        if self._java is None:
            raise LocalError("Spark needs a Java, and these services were started without Spark")
        return {
            **inherited(os.environ, prefix=Path(sys.prefix)),
            **spark_service.settings(token=self._secrets.spark_token, java=self._java),
            "LAKE": self.lake,
            **self._env,
        }

    def _settings(self, name: str) -> str:
        parts = {
            "lake": self.lake,
            "env": self._env,
            "folders": [str(self._dags), str(self._plugins)] if name == airflow_service.NAME else [],
            "conf": self._spark_conf if name == spark_service.NAME else {},
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _await_health(self, shown: Display) -> None:
        within = {
            airflow_service.NAME: airflow_service.HEALTHY_WITHIN,
            spark_service.NAME: spark_service.HEALTHY_WITHIN,
        }
        begun = time.monotonic()
        waiting = list(self._wanted)
        while waiting:
            for name in list(waiting):
                started = self._up[name]
                check_alive(started, when=" while it was starting")
                if is_healthy(started):
                    shown.end(name, "healthy")
                    waiting.remove(name)
                elif time.monotonic() - begun > within[name]:
                    raise LocalError(
                        f"{name} is not healthy after {within[name]:.0f} s; {end_of_log(started)}"
                    )
            if waiting:
                time.sleep(POLL_SECONDS)


# --- a run directory and the services in it, also those that another process started


def record_path(run_dir: Path, name: str) -> Path:
    return run_dir / f"{name}.json"


def mark_of(run_dir: Path, name: str) -> str:
    return f"{run_dir}:{name}"


def running(run_dir: Path, name: str) -> Started | None:
    """The service of this run directory, if its keeper is alive."""
    started = record.read(record_path(run_dir, name))
    return started if started is not None and processes.is_alive(started.keeper) else None


def check_alive(started: Started, *, when: str = "") -> None:
    """Raises LocalError, with the end of the log, if the service has ended."""
    if not processes.is_alive(started.keeper):
        raise LocalError(f"{started.service} ended{when}; {end_of_log(started)}")


def is_healthy(started: Started) -> bool:
    """Whether the service itself answers, and not another program that took its port."""
    port = started.ports["api" if started.service == airflow_service.NAME else "connect"]
    if not processes.listens(started.keeper, port):
        return False
    if started.service == airflow_service.NAME:
        api = AirflowApi(airflow_service.url(started.ports["api"]), user="", password="")
        return airflow_service.is_healthy(api)
    return spark_service.is_healthy(started.ports["connect"])


def stop_all(run_dir: Path, *, silent: bool = False) -> list[str]:
    """Stops all services of the run directory, also those that another process started; returns their names."""
    run_dir = run_dir.resolve()
    ended = []
    with display(silent=silent) as shown:
        for name in NAMES:
            mark = mark_of(run_dir, name)
            started = record.read(record_path(run_dir, name))
            keeper = processes.find(mark) if started is None else started.keeper
            if keeper is None:
                continue
            if processes.is_alive(keeper) or processes.survivors(keeper, mark=mark):
                shown.begin(name, "stopping")
                processes.stop(keeper, mark=mark)
                shown.end(name, "stopped")
                ended.append(name)
            record_path(run_dir, name).unlink(missing_ok=True)
    return ended


def environ_of(started: Started) -> dict[str, str]:
    """The environment with which the service was started."""
    try:
        environ = psutil.Process(started.keeper.pid).environ()
    except psutil.Error as problem:
        raise LocalError(f"{started.service} has ended, or is another user's ({problem})") from None
    return {name: value for name, value in environ.items() if name != processes.MARK}


def end_of_log(started: Started) -> str:
    """The last lines of the service's log, and where it is."""
    try:
        lines = Path(started.log).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return f"{started.log} is gone"
    return "\n    ".join([f"the end of {started.log}:", *lines[-TAIL_LINES:]])


def absolute(lake: str) -> str:
    """The lake's URI, with a local path made absolute, because each service runs in its own folder."""
    return lake if "://" in lake else str(Path(lake).resolve())


@contextmanager
def _only_one(path: Path, *, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Holds a lock on the run directory, so that only one caller starts its services; others wait, then find them
    running."""
    with path.open("w") as file:
        deadline = clock() + LOCK_SECONDS
        while True:  # until the lock is had or the deadline is over
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if clock() > deadline:
                    raise LocalError(
                        f"another process has held {path} for {LOCK_SECONDS:.0f} s to start the services: "
                        "wait for its end, or stop it"
                    ) from None
                time.sleep(POLL_SECONDS)
        yield
