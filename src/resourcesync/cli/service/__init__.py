"""The service behind `watch`: its jobs, its pages, and the files that begin it.

Settings of mirrors come in; reports of jobs go out, as lines, events and metrics.
"""
