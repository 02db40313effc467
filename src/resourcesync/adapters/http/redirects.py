"""Where a redirect may lead. Pure."""

from urllib.parse import urljoin

from resourcesync.adapters.http.addresses import (
    LONGEST_URI,
    Address,
    origin_of,
    parse_address,
    without_query,
)
from resourcesync.errors import BadResponseError, SourceRefusedError


def follow_redirect(uri: str, location: str, *, left: int) -> Address:
    """Return where a redirect from ``uri`` leads; ``left`` is how many may still be followed.

    Raises:
        BadResponseError: ``redirect``: there is no usable ``Location``.
        SourceRefusedError: ``redirect``: it is one too many, or leads to a scheme other than http
            and https, or from https to http.
    """
    if left <= 0:
        raise SourceRefusedError("the server redirects too often", uri=uri, code="redirect")
    sound = location.isascii() and location.isprintable() and " " not in location
    if not location or not sound or len(location) > LONGEST_URI:
        raise BadResponseError(
            "the redirect has no usable Location",
            uri=uri,
            evidence=(("got", f"a Location of {len(location)} characters"),),
            code="redirect",
        )
    try:
        address = parse_address(urljoin(uri, location))
    except (ValueError, SourceRefusedError) as error:
        raise _redirect_refused(uri, location) from error
    if uri[:6].lower() == "https:" and address.uri[:6].lower() != "https:":
        raise _redirect_refused(uri, location)
    return address


def crosses_origin(left: str, right: str) -> bool:
    """Whether two authorities are of different origins."""
    return left != right and origin_of(left) != origin_of(right)


def _redirect_refused(uri: str, location: str) -> SourceRefusedError:
    return SourceRefusedError(
        "the redirect leads where policy does not allow",
        uri=uri,
        evidence=(("got", f"Location: {without_query(location)[:200]}"),),
        code="redirect",
    )
