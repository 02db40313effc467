"""Copies of a large mirror in Parquet files, joined by DuckDB (ADR 0068; extra ``tables``)."""

from resourcesync.adapters.tables.store import ParquetTables, copies_to_parts, parts_to_copies

__all__ = ["ParquetTables", "copies_to_parts", "parts_to_copies"]
