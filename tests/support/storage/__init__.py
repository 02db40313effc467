"""Stores, connections and attacks on files for tests of what is kept on a disk."""
