"""The web view in Airflow's own UI: the pages of `log_lake.view`, and buttons that start agents.

    plugin     what Airflow is told             app        who may see the pages; what only Airflow can answer
    catalog    the Iceberg catalog of the lakes, by the same login

    the page --GET--> app -> log_lake.view      reads only: nothing here writes to a lake
    the page --POST-> Airflow's own API         starts an agent, with the rights of the user

The server has no route that changes anything, and the page has no right that its user has not (decision 91).
Airflow imports `plugin` in each of its processes; everything else is imported at the first request of the page.
"""
