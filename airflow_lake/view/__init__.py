"""The web view: a page in Airflow's own UI that shows the pools of a lake, and starts agents.

    plugin     what Airflow is told             access     who may see it; what a browser may ask
    routes     the requests of the page         lakes      the lakes that are shown
    figures    a pool in numbers (pure)         overview   all pools, read side by side and cached
    geometry   bars and bins over keys (pure)   layout     the geometry of a pool at a version
    graph      the history as a graph (pure)    work       reading without keeping Airflow waiting
    static     the page: HTML, CSS and modules, as written

    the page --GET--> routes -> lakes -> overview, layout, graph     reads only: nothing here writes to a lake
    the page --POST-> Airflow's own API                              starts an agent, with the rights of the user

The server has no route that changes anything, and the page has no right that its user has not (decision 91).
Airflow imports `plugin` in each of its processes; everything else is imported at the first request of the page.
"""
