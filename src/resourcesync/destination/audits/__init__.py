"""Audits: the copies are compared with the Source's lists, or with their own bytes.

A session goes in; a report with findings, or the history of one resource, comes out.
"""
