"""The validator: every rule of the standard, reported with its place, clause and fix.

`rules` is the table; `examination` checks one document as it streams by; `cross_document` compares
documents with each other; `delivery` and `packages` check facts that the caller has fetched.
Nothing here opens a file or a connection.
"""
