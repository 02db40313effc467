"""Copies of a large mirror in Parquet files, joined by DuckDB (ADR 0068; extra ``tables``)."""

from resourcesync.cluster.tables.parquet_tables import ParquetTables, copies_to_parts

__all__ = ["ParquetTables", "copies_to_parts"]
