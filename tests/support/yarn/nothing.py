"""An application that does nothing: Spark has fetched its packages by the time it runs."""
