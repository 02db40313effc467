"""Composition: settings become objects here, and only here are adapters named.

One module per use case, so that a command imports only what it needs.
"""
