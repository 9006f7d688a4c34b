"""A read-only Iceberg REST catalog, answered from journals: other programs attach a lake by one address.

    request    a request and an answer as values; the path in parts (pure)
    routes     the route that a request takes, or the refusal (pure)
    answers    the bodies of answers, as the specification names their fields (pure)
    refusals   an error of the lake as an error of the specification (pure)
    tables     the table of a pool: published if it lags behind
    ages       when a table was last published because its records had aged
    turns      one publication of a table at a time, shared by the requests that wait for it
    catalog    the answer to a request, over several lakes
    app        the catalog as ASGI, in threads of its own
    callers    the callers of `lake serve`: their names, roles and tokens, from a file
    serving    the address of `lake serve`, and who is admitted there

    a client --GET--> app -> catalog -> routes, tables -> log_lake.publish

A lake is a namespace, a pool is a table, `POOL@NAME` (or `POOL:NAME`) is the table of a branch or a tag.  The
catalog changes no record.  It publishes a table before it answers, if the table lags behind and the lake may be
written.
"""
