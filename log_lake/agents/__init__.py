"""The agents, which keep the lake in order: one folder an agent, one row of `roster` an agent.

`ingest`, `intervals`, `compact`, `checkpoint`, `tombstones`, `retention`, `erasure`.

The same names are in each folder:

    policy     a pool's settings as one value (in `plan`, if it is a few lines)
    plan       what to do, decided from that value, a state and a time; pure
    run        the agent itself (`AGENT`): what it does differently from others; reads and writes the store
    report     what is planned and what was done, in words, and the agent's results

`agent` says what an agent is.  `driver` drives each of them through find, run and report, for every caller.  `work`
has the values that go between these, and their form in packs, XComs, `$jobs` and JSON.

An agent's DAG, settings (`compact.*`) and schedule (LAKE_COMPACT_SCHEDULE) bear its name; those of `retention` bear
the names of its steps (`expire.*`, `vacuum.*`, `lease.*`), and `erasure` has none of its own.  All share `request`
(what a run was asked for), `finding` (looking at pools, and which to leave alone for now), `packs` (work kept for
tasks), `jobs` (what was done, kept) and `reporting` (how a run ends).
"""
