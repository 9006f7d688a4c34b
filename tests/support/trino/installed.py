"""Installs Trino apart from the project: a folder with those parts of an unpacked `trino-server` that the server
and Iceberg's connector need.

Newer archives of the server are not on Maven, but its jars are. Maven (`mvn`) fetches them once, in the
versions that `pom.xml` pins. One thing that the archive has and the jars lack is added: the file that names the
plugin.
"""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

from tests.support.repository import ROOT

PARTS = {"main": "lib", "iceberg": "plugin/iceberg", "hdfs": "plugin/iceberg/hdfs"}
"""By part of Trino: the folder in which the server expects it."""
_POM = ROOT / "tests" / "support" / "trino" / "pom.xml"


def installed(folder: Path = ROOT / ".venv" / "trino") -> Path:
    """Returns the folder, after filling it if necessary. Raises FileNotFoundError if there is no `mvn`,
    CalledProcessError."""
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
