"""The library's face: settings become objects by way of ``wiring``, and results become values.

What is public is exported by ``resourcesync`` and ``resourcesync.documents``; import it from there.
"""
