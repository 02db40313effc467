"""Settings become objects: the only place that names adapters.

One module per side, so that a command imports only what it needs.
"""
