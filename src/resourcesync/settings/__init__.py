"""The settings of mirrors, publications and services, each described once.

From a description come the option of the command line, the key of the configuration file, and the
keyword argument of the library. Nothing here opens a mirror.
"""
