"""Trino beside ours: a folder with what an unpacked `trino-server` has of the server and of Iceberg's connector.

Newer archives of the server are not on Maven, but its jars are.  Maven itself (`mvn`) fetches them, in the versions
that `pom.xml` pins, once.  What the archive has and the jars do not is added: the file that names the plugin.
"""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

from tests.support.repository import ROOT

PARTS = {"main": "lib", "iceberg": "plugin/iceberg", "hdfs": "plugin/iceberg/hdfs"}
"""Parts of Trino, and where the server looks for each."""
_POM = ROOT / "tests" / "support" / "trino" / "pom.xml"


def installed(folder: Path = ROOT / ".venv" / "trino") -> Path:
    """The folder, filled if it is not yet.  Raises FileNotFoundError if there is no `mvn`, CalledProcessError."""
    stamp, pinned = folder / "stamp", _POM.read_text()
    if stamp.exists() and stamp.read_text() == pinned:
        return folder
    shutil.rmtree(folder, ignore_errors=True)  # jars of another version
    for part, place in PARTS.items():
        command = ["mvn", "--batch-mode", "--quiet", "--no-transfer-progress", "--file", str(_POM)]
        command += ["dependency:copy-dependencies", f"-Dpart={part}", "-DincludeScope=runtime"]
        # names of different groups may be equal
        command += ["-Dmdep.prependGroupId=true", f"-DoutputDirectory={folder / place}"]
        subprocess.run(command, check=True)
    with zipfile.ZipFile(folder / PARTS["iceberg"] / "services.jar", "w") as jar:
        jar.writestr("META-INF/services/io.trino.spi.Plugin", "io.trino.plugin.iceberg.IcebergPlugin\n")
    stamp.write_text(pinned)
    return folder
