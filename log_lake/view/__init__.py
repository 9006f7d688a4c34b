"""The pages of the web view, which Airflow's API server serves, or `lake ui` on a laptop.

    serving    the server of `lake ui`          routes     the requests of the page
    guard      what a browser may ask           lakes      the lakes that are shown
    pool_page  one pool: health, fields ...     sample     the first records of a pool
    overview   all pools, side by side, cached  figures    a pool in numbers (pure)
    layout     the geometry at a version        geometry   bars and bins over keys (pure)
    graph      the history as a graph (pure)    sayings    a transaction in words (pure)
    work       reading in threads of its own    addresses  names without secrets (pure)
    static     the page: HTML, CSS and modules, as written

    the page --GET--> routes -> lakes -> pool_page, overview, layout, graph     reads only: nothing here writes

The app has no route that changes anything.  It needs FastAPI, which only `routes` and `serving` import: the extra
`ui` brings it, and so does Airflow.
"""
