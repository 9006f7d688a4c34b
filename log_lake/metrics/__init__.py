"""The state of lakes as metrics of Prometheus, by `lake serve`.

    pool_watch   reads the pools of a lake, and keeps the result while nothing is written
    job_sums     sums over the jobs that ended since the first read
    families     the results as families of metrics (pure)
    watching     the metrics of several lakes, each in threads of its own

    Prometheus --GET /metrics--> watching -> pool_watch, job_sums -> families

A lake, or a pool, that cannot be read is reported as a metric too, and hides no other.
"""
