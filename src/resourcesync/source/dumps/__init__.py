"""Dumps: packages of resources or changes, and the documents that list them.

A catalogue and the contents of resources come in; packages and Dump documents go out.
"""
