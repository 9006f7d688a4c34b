"""The wheel and the source distribution, built once; and an environment of the wheel with the extra s3."""

from __future__ import annotations

import pytest

from tests.support.repository import ROOT
from tests.support.wheel import Built, Environment, build, install


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def with_s3(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return install(built, ["s3"], tmp_path_factory.mktemp("environment"))
