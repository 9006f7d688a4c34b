"""The address of a store: what another process needs to open the same one.

A Spark task uses it to open the store of its driver.  A URI alone is not enough if the driver was given
credentials as options, for example from a connection of Airflow: the workers would search for credentials of
their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lake_core.store.port import Store


@dataclass(frozen=True)
class Address:
    """The URI and options of a store.  `options` may hold secrets: they are not shown, and must not be logged."""

    uri: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


def address_of(store: Store) -> Address:
    """Returns the address of a store that `open_store` opened; for any other store its URI alone."""
    return Address(store.uri, dict(getattr(store, "options", {})))
