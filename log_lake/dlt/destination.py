"""The destination `lake`, and the hint for the key of a pool."""

from __future__ import annotations

from typing import Any

from dlt.common.destination import Destination, DestinationCapabilitiesContext
from dlt.destinations.utils import get_resource_for_adapter
from dlt.extract import DltResource

from lake_core.keys import PoolKey
from log_lake.dlt.client import LakeClient
from log_lake.dlt.configuration import LakeConfiguration
from log_lake.dlt.tables import KEY_HINT

MOST_JOBS = 4
"""Table chains that are loaded at the same time: each may take `load.memory`."""


class lake(Destination[LakeConfiguration, LakeClient]):  # dlt names its destinations so
    """The destination of dlt that loads tables into pools of a lake."""

    spec = LakeConfiguration

    def __init__(
        self,
        uri: str | None = None,
        separator: str = ".",
        destination_name: str | None = None,
        environment: str | None = None,
        **kwargs: Any,
    ) -> None:
        """`uri`: a folder, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX; if there is no lake yet, the first load makes
        one.

        `separator` is put between dataset and table in the names of pools.  The other arguments are dlt's.
        """
        super().__init__(
            uri=uri,
            separator=separator,
            destination_name=destination_name,
            environment=environment,
            **kwargs,
        )

    @property
    def client_class(self) -> type[LakeClient]:
        """The class of the client that dlt's loader makes."""
        return LakeClient

    def _raw_capabilities(self) -> DestinationCapabilitiesContext:
        caps = DestinationCapabilitiesContext.generic_capabilities(
            preferred_loader_file_format="parquet", supported_merge_strategies=["upsert"]
        )
        caps.supported_loader_file_formats = ["parquet", "reference"]
        caps.supported_replace_strategies = ["truncate-and-insert"]
        caps.max_identifier_length = 200
        caps.max_column_identifier_length = 1024
        caps.max_text_data_type_length = 16 << 20
        caps.is_max_text_data_type_length_in_bytes = True
        caps.decimal_precision = (38, 9)
        caps.wei_precision = (38, 0)
        caps.max_timestamp_precision = 9
        caps.supports_ddl_transactions = False
        caps.max_parallel_load_jobs = MOST_JOBS
        return caps


lake.register()


def lake_adapter(data: Any, *, key: str) -> DltResource:
    """Returns the resource with a hint: when its pool is made, the pool is sorted by `key` (`FIELD[:desc],...`).

    Raises InvalidInput for a key that cannot be read.
    """
    PoolKey.parse(key)
    resource = get_resource_for_adapter(data)
    resource.apply_hints(additional_table_hints={KEY_HINT: key})
    return resource
