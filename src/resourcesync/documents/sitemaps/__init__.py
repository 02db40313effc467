"""Sitemaps in other forms than the XML of the protocol: what sitemaps.org allows besides it.

Bytes come in; entries go out as if they were written in XML.
"""
