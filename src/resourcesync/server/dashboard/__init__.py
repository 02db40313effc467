"""Pages for those who keep mirrors: made here as text, without script, read-only.

Values come in (``views``), HTML and SVG go out; nothing here reads a mirror.
"""
