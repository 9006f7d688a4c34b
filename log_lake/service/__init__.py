"""Queries and loads by HTTP, for programs without Python; beside the Iceberg catalog, in `lake serve`.

    routes         what a request asks, as a value, or why it is refused (pure)
    formats        the format of an answer and of a body, by media types (pure)
    problems       errors as answers (pure)
    limits         what one request, and all of them together, may take
    spool          an answer on disk: a query writes it, its client reads it
    endings        how the last queries ended
    queries        one query that reads, in a thread
    receiving      the body of a request: in memory, or in a file
    writes         loads, statements that change records, pools: each one transaction
    handing_over   a body as a file for the ingest agent
    admitted       a request that was admitted, and its answer
    reading        answers queries that read
    writing        answers what changes a lake
    conversation   sends an answer, and notices that its client has gone
    description    the page that shows openapi.json
    app            the routes as ASGI

    a client --POST--> app -> queries -> spool -> a client
                       app -> receiving -> writes -> log_lake.lake

A query runs at the speed of the lake into a file, and its client reads that file at a speed of its own.  So a slow
client holds a part of the disk, and no engine, thread or memory.
"""
