"""Mirrors that are put together from a folder or store, its state and the network.

A place and settings come in; what can be pulled, viewed or restored goes out.
"""
