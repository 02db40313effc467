"""A judge of documents: every rule of the standard, checked with its place, clause and mend.

`rules` is the table; `examining` judges one document as it streams by; `together` compares what
several documents say of each other; `delivery`, `packages` and `notifications` judge facts that
somebody else has fetched. Nothing here opens a file or a connection.
"""
