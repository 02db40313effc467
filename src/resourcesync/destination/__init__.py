"""Mirror: baseline synchronization, incremental synchronization and audit (§5)."""
