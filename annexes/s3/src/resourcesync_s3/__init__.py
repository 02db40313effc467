"""Objects in a bucket that speaks S3: copies, documents and originals (ADR 0046)."""

from resourcesync_s3.store import open_store

__all__ = ["open_store"]
