"""Opens the store that an address and the environment name: its kind, its budget of time, and its lock.

    local, memory   the stores in a folder (`folders` opens its files) and in memory
    opening   the store of a URI, an address, and the variables LAKE_LOCK, LAKE_READ_ONLY, LAKE_STORE_TIMEOUT
    cloud     the stores on S3 and Google Cloud Storage, over fsspec: `credentials` checks for credentials before
              the first request, `listing` and `pieces` send each service's own requests, `sends` counts sendings
    locked    a store that creates under a lock, for stores without create-only put
    locks     such locks: files of a shared folder, or a PostgreSQL server
    caches    what a process caches of the objects of a server: LAKE_MEMORY_CACHE, LAKE_CACHE
    memory_cache, disk_cache    such ranges in memory, and in a folder that processes share
    ranges    parts of an object, planned and fetched side by side
    read_only a store that a process may only read
    guard     wraps every store, so that only the errors of the port pass; `failures` words the errors
    patience  how long a call may wait for a store that does not answer

`lake_core.store` has the port.  Called by the lake, workers, the view, and by loads of files in buckets.
"""

from log_lake.stores.opening import open_store

__all__ = ["open_store"]
