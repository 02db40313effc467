"""Dashboard for operators of mirrors: read-only HTML pages, generated as text, without script.

Values come in (``views``), HTML and SVG go out; this package does not read a mirror.
"""
