"""The library's face, and the one place that names adapters: settings go in, objects come out.

``resourcesync`` exports its public names; import them there.
"""
