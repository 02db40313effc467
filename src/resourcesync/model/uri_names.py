"""Names as parts of published URIs: how they are written, and which cannot be published."""

from typing import Final

MAX_URI: Final = 2_048
"""Characters of the longest URI, as written and normalised: the limit of the Sitemap protocol."""
UNESCAPED: Final = "():,=@"
"""Beside the unreserved characters those of pchar that need no escape in XML, in a shell, or in a
server that reads "+" as a blank or ";" as a parameter."""


def uri_fault(key: str, room: int) -> str | None:
    """Return why Destinations refuse a name in a URI; ``None`` if they do not."""
    if len(key) > room:
        return f"its URI is longer than {MAX_URI} characters"
    if "%0" in key and ("%0A" in key or "%0D" in key):
        return "its file name contains a line break, which Destinations refuse"
    return None
