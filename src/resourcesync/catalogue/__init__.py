"""The Source's catalogue in one SQLite file: its resources, changes and versions.

Originals, or what other programs report, come in; what a publisher lists goes out.
"""
