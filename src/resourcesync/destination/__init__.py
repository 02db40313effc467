"""Destination: synchronization, audit, repair and trash of a mirror (§5)."""
