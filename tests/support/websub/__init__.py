"""Checks of hubs and subscribers by HTTP alone: ours, and any other that has an address.

Their numbers are those of the public test site of WebSub; their contents follow the clauses of the
W3C recommendation that they name.
"""
