"""The hook of a connection of type `lake`: the lake, and the Spark that works on it.

    LakeHook("lake_default").get_lake().pool("flights").at().to_table()

Connections are read when a method is called, never when a DAG file is parsed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_lake import DEFAULT
from airflow_lake.connection import LakeAddress, kafka_clients, lake_address, spark_address, store_options

if TYPE_CHECKING:
    from log_lake.lake import Lake


class LakeHook(BaseHook):
    """Opens the lake that a connection names."""

    conn_name_attr: ClassVar[str] = "lake_conn_id"
    default_conn_name: ClassVar[str] = DEFAULT
    conn_type: ClassVar[str] = "lake"
    hook_name: ClassVar[str] = "Log lake"

    def __init__(self, lake_conn_id: str = DEFAULT) -> None:
        super().__init__()
        self.lake_conn_id = lake_conn_id

    @property
    def address(self) -> LakeAddress:
        """Returns where the lake is, with all options of its store.  Raises InvalidInput."""
        address = lake_address(_connection(self.lake_conn_id, "lake"))
        if not address.credentials:
            return address
        credentials = store_options(_connection(address.credentials, "aws"), uri=address.uri)
        return replace(address, options={**credentials, **address.options})

    def get_lake(self, *, metadata: Mapping[str, str] | None = None) -> Lake:
        """Opens and returns the lake.  Its transactions carry `metadata`, and the DAG, run, task and try of the
        running task.

        Raises InvalidInput, NotFound, Corrupt, Unavailable.
        """
        from log_lake.lake import Lake

        address = self.address
        clients = kafka_clients(_connection(address.kafka, "kafka")) if address.kafka else {}
        lake = Lake.open(address.uri, options=address.options, metadata=metadata)
        lake.clients = clients
        return lake

    def get_conn(self) -> Lake:
        """Returns what `get_lake` returns; Airflow calls this method of every hook."""
        return self.get_lake()

    def test_connection(self) -> tuple[bool, str]:
        """Returns whether the lake opens, and what it contains, or why it does not open.

        The Spark connection that it names must exist, but Spark itself is not contacted.
        """
        from lake_core.errors import LakeError
        from lake_core.phrases import counted

        try:
            if spark := self.address.spark:
                spark_address(_connection(spark, "spark_connect"))
            lake = self.get_lake()
            pools = lake.pools()
        except LakeError as error:  # Airflow tests a connection under a random id
            return False, str(error).replace(f"connection {self.lake_conn_id!r}", "this connection")
        return True, f"{lake.store.uri}: the lake {lake.id} has {counted(len(pools), 'pool')}"


@contextmanager
def spark_of(conn_id: str, name: str, *, conf: Mapping[str, str]) -> Iterator[Any]:
    """Gives a Spark session named `name`, with these settings, on the Spark of a connection, for a `with` block.

    Raises InvalidInput, Unavailable.
    """
    from spark_apps.session import spark_session

    address = spark_address(_connection(conn_id, "spark_connect"))
    where = f"connection {conn_id!r}"
    with spark_session(
        name,
        remote=address.remote,
        master=address.master,
        setting=where,
        conf={**address.conf, **conf},
    ) as spark:
        yield spark


def _connection(conn_id: str, kind: str) -> Any:
    """Returns the connection as Airflow stores it.  Raises InvalidInput if there is none; `kind` is the expected
    type.

    For a variable that it cannot parse, Airflow says that there is no connection.  The value may hold a secret,
    and is not repeated.
    """
    from lake_core.errors import InvalidInput

    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        if (variable := f"AIRFLOW_CONN_{conn_id.upper()}") in os.environ:
            raise InvalidInput(
                f"connection {conn_id!r}: Airflow cannot read the variable {variable}; write a URI, or JSON such "
                f'as {{"conn_type": "{kind}", "host": "..."}}'
            ) from error
        or_else = (
            "; or name the lake by its URI (in LAKE, or as the parameter `lake`)" if kind == "lake" else ""
        )
        raise InvalidInput(
            f"no connection {conn_id!r} in Airflow; make one of type {kind}: Admin, Connections, or airflow "
            f"connections add {conn_id} --conn-type {kind}{or_else}"
        ) from error
