"""Reports and events as people see them: lines, tables and pages.

Reports of the library come in; text goes out. Nothing here opens a mirror.
"""
