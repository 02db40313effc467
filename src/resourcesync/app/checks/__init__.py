"""Checks of a mirror or a Source, which change nothing.

An address or a folder comes in; findings, differences and hints go out.
"""
