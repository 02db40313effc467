"""The public library: settings become objects by way of ``wiring``, and results become values.

Public names are exported by ``resourcesync`` and ``resourcesync.documents``; import them there.
"""
