"""Kafka without a coordinator: records of topics, with the offsets in the transaction that brings them.

`source` reads `kafka://HOSTS/TOPICS`, `settings` the settings `kafka.*`, and `plan` decides from which offsets to
read (all three pure).  `broker` asks and reads the brokers, `clients` finds their credentials, `messages` turns
messages into blocks of records, and `load` commits them.  `positions` shows and sets offsets, for people.

Callers: the ingest agent, `lake offsets`.
"""
