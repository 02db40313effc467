"""Exports of a mirror: the formats of ours, and the check of every byte that goes into one.

Copies of one moment come in; the files of an export go out, or the copies that are damaged.
"""
