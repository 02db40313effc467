"""Where units are done: processes here, executors of others, Dask, Spark (ADR 0066)."""
