"""The configuration of the destination, as dlt reads it: arguments, variables, `config.toml`, `secrets.toml`."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Final, Optional

from dlt.common.configuration import configspec
from dlt.common.configuration.specs.base_configuration import NotResolved
from dlt.common.destination.client import DestinationClientDwhConfiguration
from dlt.common.utils import digest128

from lake_core.errors import without_secrets


@configspec
class LakeConfiguration(DestinationClientDwhConfiguration):
    """What a user configures.  `uri`: the address of the lake.  `separator`: the text between the names of dataset
    and table in the name of a pool."""

    destination_type: Final[str] = dataclasses.field(
        default="log_lake.dlt.destination.lake", init=False, repr=False, compare=False
    )
    dataset_name: Annotated[Optional[str], NotResolved()] = dataclasses.field(  # noqa: UP045  # dlt reads the annotation
        default=None, init=False, repr=False, compare=False
    )
    uri: str = None  # type: ignore[assignment]  # dlt's sign for a value that must be given
    separator: str = "."

    def data_location(self) -> str | None:
        """Returns the address of the lake."""
        return self.uri

    def fingerprint(self) -> str:
        """Returns a digest of the lake's address, by which dlt tells destinations apart."""
        return digest128(self.uri) if self.uri else ""

    def __str__(self) -> str:
        return without_secrets(self.uri or "")
