"""The agents, which keep the lake in order: each has a folder here and a row of `roster`.

`ingest`, `intervals`, `compact`, `split`, `checkpoint`, `tombstones`, `retention`, `erasure`.

Each folder has the same files:

    policy     the agent's settings, and those of a pool as one value (in `plan`, if it takes a few lines)
    plan       decides what to do, from that value, a state and a time; pure
    run        the agent itself (`AGENT`): what it does differently from others; reads and writes the store
    report     the agent's results, and the words for plans and results

`agent` defines an agent.  `driver` runs the steps find, run and report of each agent, for every caller.  `work`
has the values that these steps pass on, and their form in packs, XComs, `$jobs` and JSON.

An agent's DAG, settings (`compact.*`) and schedule (LAKE_COMPACT_SCHEDULE) have its name.  The settings of
`retention` have the names of its steps (`expire.*`, `vacuum.*`, `lease.*`), and `erasure` has none of its own.
All agents share `request` (the parameters of a run), `finding` (looks at pools, and decides which to defer),
`packs` (stores work for tasks), `jobs` (records what was done) and `reporting` (ends a run).
"""
