"""Real code on a store that fails as a seed says, deterministically: the journal, and every pair of agents.

`scheduler` runs actors as greenlets, one request at a time; `faulty` is the store; `rules` are the rules and the
seeds that fail without them.

The journal: `truth` knows what really happened and checks the invariants of docs/protocol.md after every step;
`actors` are writers, readers, purgers and vandals; `world` puts them together for one seed.
`python -m tests.simulation 20000` runs many seeds.

Pairs: `pair_world` is their world, `pair_process` a process in it, `pair_actors` who works there; `pairs` runs
every two of them; `oracle` says what the pool should show and hold; `table` is the table of docs/simulation.md.
`python -m tests.simulation 20000 --pairs` runs many seeds.

Histories: `histories` runs transactions over several pools, and looks for what no order of them explains.
"""
