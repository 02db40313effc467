"""Engines that run units of work: local processes, given executors, Dask, Spark (ADR 0080)."""
