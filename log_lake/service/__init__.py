"""Queries and loads by HTTP, for programs without Python; beside the Iceberg catalog, in `lake serve`.

    routes         what a request asks for, as a value, or why it is refused (pure)
    formats        the format of an answer and of a body, by media types (pure)
    problems       errors as answers (pure)
    limits         what one request, and all of them together, may use
    spool          an answer on disk: a query writes it, its client reads it
    endings        how the last queries ended
    queries        one query that reads, in a thread
    receiving      the body of a request: in memory, or in a file
    writes         loads, statements that change records, pools: each one transaction
    handing_over   a body as a file for the ingest agent
    admitted       a request that was admitted, and its answer
    reading        answers queries that read
    writing        answers requests that change a lake
    conversation   sends an answer, and notices that its client is gone
    description    the page that shows openapi.json
    app            the routes as ASGI

    a client --POST--> app -> queries -> spool -> a client
                       app -> receiving -> writes -> log_lake.lake

A query writes its answer into a file at the speed of the lake, and the client reads that file at its own speed.
So a slow client occupies disk, but no engine, thread or memory.
"""
