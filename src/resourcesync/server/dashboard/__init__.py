"""Read-only HTML pages, generated as text: the dashboard of operators, and the page of a Source.

Values come in (``views``), HTML goes out; this package does not read a mirror.
"""
