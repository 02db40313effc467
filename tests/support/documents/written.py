"""Documents whose parts a test writes by hand."""

import hashlib
from collections.abc import Iterable

from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS


def written(head: str, entries: Iterable[str] = (), root: str = "urlset") -> str:
    opened = f'<{root} xmlns="{SITEMAP_NS}" xmlns:rs="{RS_NS}">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{opened}{head}{"".join(entries)}</{root}>\n'


def listed(capability: str, at: str, entries: Iterable[str], root: str = "urlset") -> bytes:
    return written(f'<rs:md capability="{capability}" at="{at}"/>', entries, root).encode()


def sha256(body: bytes) -> str:
    return f"sha-256:{hashlib.sha256(body).hexdigest()}"


def facts(body: bytes | str) -> str:
    data = body.encode() if isinstance(body, str) else body
    return f' hash="{sha256(data)}" length="{len(data)}"'
