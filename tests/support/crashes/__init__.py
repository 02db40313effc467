"""Runs that are killed, fail on the disk or lose power, and what must hold afterwards."""
