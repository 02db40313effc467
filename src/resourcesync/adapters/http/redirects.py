"""Redirects: which are followed, and which policy forbids. Pure.

What a redirect leads to is then an address like any other: its own rules and limits count, and a
Source must not lead to an address that is not public.
"""

import re
from urllib.parse import quote, urljoin

from resourcesync.adapters.http.addresses import LONGEST_URI, Address, parse_address, without_query
from resourcesync.errors import BadResponseError, SourceRefusedError

_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def follow_redirect(uri: str, location: str, *, left: int) -> Address:
    """Return the target of a redirect from ``uri``; ``left`` is the number still allowed."""
    if left <= 0:
        raise BadResponseError("the server redirects too often", uri=uri, code="location")
    target = _read_location(location)
    if not target or _CONTROL.search(target) or len(target) > LONGEST_URI:
        raise BadResponseError(
            "the redirect has no usable Location",
            uri=uri,
            evidence=(("got", f"a Location of {len(location)} characters"),),
            code="location",
        )
    try:
        address = parse_address(urljoin(uri, target))
    except (ValueError, SourceRefusedError) as error:
        raise _redirect_refused(uri, location) from error
    if uri[:6].lower() == "https:" and address.uri[:6].lower() != "https:":
        raise _redirect_refused(uri, location)
    return address


def _read_location(field: str) -> str:
    raw = field.encode("latin-1", "replace")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return quote(raw, safe=f"{_PRINTABLE} ")


def _redirect_refused(uri: str, location: str) -> SourceRefusedError:
    return SourceRefusedError(
        "the redirect leads where policy does not allow",
        uri=uri,
        evidence=(("got", f"Location: {without_query(location)[:200]}"),),
        code="redirect",
    )
