"""The ``Cache-Control`` of what is served: what never changes, what may, and what is secret."""

from typing import Final

NO_CACHE: Final = {"cache-control": "no-cache"}
FOREVER: Final = {"cache-control": "max-age=31536000, immutable"}
NO_STORE: Final = {"cache-control": "no-store"}
