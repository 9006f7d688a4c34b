"""Who keeps the lake in order: one folder an agent.

`ingest`, `intervals`, `compact`, `checkpoint`, `tombstones`, `retention`, `erasure`.

The same names are in each:

    policy     a pool's settings as one value (in `plan`, if it is a few lines)
    plan       what to do, decided from that value, a state and a time; pure
    run        finding the pools with work (`find`), and the work itself; reads and writes the store
    report     what is planned and what was done, in words, and the agent's last task (`report`)

An agent's DAG, Spark application, settings (`compact.*`) and schedule (LAKE_COMPACT_SCHEDULE) bear its name; those
of `retention` bear the names of its steps (`expire.*`, `vacuum.*`, `lease.*`), and `erasure` has none of its own.
The tasks of a DAG are `find`, `run` and `report`; `find` and `report` need no Spark, and `spark_apps` has `run`.
`roster` says what tells the agents apart.  All share `request` (what a run was asked for), `finding` (looking at
pools, and which to leave alone for now), `packs` (work kept for tasks), `jobs` (what was done, kept) and
`reporting` (how a run ends).
"""
