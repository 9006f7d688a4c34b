"""The journal under every fault, deterministically: the real code on a store that fails as a seed says.

`scheduler` runs actors as greenlets, one request at a time; `faulty` is the store; `truth` knows what really
happened and checks the invariants of docs/protocol.md after every step; `actors` are writers, readers, purgers and
vandals; `world` puts them together for one seed.  `python -m tests.simulation 20000` runs many seeds.
"""
