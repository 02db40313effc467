"""The page at the top of a Source whose tree has none: it leads to the lists (§6.3.3)."""

import hashlib
import shlex
from html import escape
from typing import Final

from resourcesync.model.vocabulary import WELL_KNOWN_PATH
from resourcesync.server.asgi import NOSNIFF, raw_headers
from resourcesync.server.caching import NO_CACHE
from resourcesync.server.conditions_and_ranges import InMemoryRepresentation, ResponseValidators

# The Source Description is relative, since a proxy may serve all this below another path.
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>ResourceSync Source</title><link rel="icon" href="data:,">
<link rel="resourcesync" href="{uri}"></head>
<body><main><h1>ResourceSync Source</h1>
<ul><li><a href="{description}">Source Description</a></li>
<li><a href="{uri}">Capability List</a></li></ul>
<p>To mirror these resources:</p>
<pre tabindex="0"><code>resourcesync pull {quoted}</code></pre></main></body></html>
"""


def front_page(capability_list: str) -> InMemoryRepresentation:
    """Return the page, by the address of the Capability List; it names no version of ours."""
    page = _PAGE.format(
        uri=escape(capability_list),
        quoted=escape(shlex.quote(capability_list)),
        description=WELL_KNOWN_PATH[1:],
    )
    body = page.encode("ascii")
    fields = {
        "content-type": "text/html; charset=utf-8",
        "link": f'<{capability_list}>; rel="resourcesync"',
        "content-security-policy": "default-src 'none'; img-src data:; frame-ancestors 'none'",
    }
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return InMemoryRepresentation(
        body=body,
        validators=ResponseValidators(etag=etag),
        headers=raw_headers(fields, NO_CACHE, NOSNIFF),
    )
