"""Which store an address and the environment mean: its kind, its budget of time, and its lock.

    opening   the store of a URI, an address, and the variables LAKE_LOCK, LAKE_READ_ONLY, LAKE_STORE_TIMEOUT
    locks     locks for stores without create-only put: files of a shared folder, or a PostgreSQL server

`lake_core.store` has the stores themselves.  Called by the lake, workers and the view.
"""

from log_lake.stores.opening import open_store

__all__ = ["open_store"]
