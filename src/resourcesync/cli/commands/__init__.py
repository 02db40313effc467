"""The commands, one module each: arguments in, a job out.

Each uses the library and settings; what it shows is in `render`.
"""
