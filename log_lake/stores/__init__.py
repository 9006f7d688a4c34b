"""Which store an address and the environment mean: its kind, its budget of time, and its lock.

    opening   the store of a URI, an address, and the variables LAKE_LOCK, LAKE_READ_ONLY, LAKE_STORE_TIMEOUT
    cloud     the stores on S3 and Google Cloud Storage, over fsspec: `credentials` looks for credentials before the
              first request, `listing` and `pieces` send each service's own requests, `sends` counts sendings
    locked    a store that creates under a lock, for stores without create-only put
    locks     such locks: files of a shared folder, or a PostgreSQL server
    caches    what a process holds of the objects of a server: LAKE_MEMORY_CACHE, LAKE_CACHE
    memory_cache, disk_cache    such ranges in memory, and in a folder that processes share

`lake_core.store` has the port, and the stores in folders and in memory.  Called by the lake, workers, the view, and
by loads of files in buckets.
"""

from log_lake.stores.opening import open_store

__all__ = ["open_store"]
