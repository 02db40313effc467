"""The settings of mirrors, publications and services, each described once.

From a schema come the options of the command line, the keys and the JSON Schema of the
configuration file, and the keyword arguments of the library. Nothing here opens a mirror.
"""
