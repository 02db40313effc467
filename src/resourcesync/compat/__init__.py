"""Outbuilding for programs that were written for other ResourceSync software.

A package here has the names of the other software and works on our reader, writer and fetcher. It
comes in by an import of its user alone: nothing else of this package loads it.
"""
