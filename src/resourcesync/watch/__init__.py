"""Synchronization of many mirrors: their schedules, retries after failures, and workers."""
