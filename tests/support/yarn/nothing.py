"""An application that does nothing. When it runs, Spark has fetched its packages."""
