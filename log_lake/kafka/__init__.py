"""Kafka without a coordinator: loads records of topics, with their offsets in the same transaction.

    source, settings   `kafka://HOSTS/TOPICS`, and the settings `kafka.*`; pure
    plan               decides from which offsets to read; pure
    broker, clients    asks and reads the brokers; finds their credentials
    messages, load     turns messages into blocks of records, and commits them
    positions          shows and sets offsets, for people

Called by the ingest agent, and by `lake offsets`.
"""
