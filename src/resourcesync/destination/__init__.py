"""Destination: baseline and incremental synchronization, audit, repair and trash of a mirror (§5).
"""
