"""Words that others registered: link relations of IANA, and the forms of addresses and types."""

import re
from typing import Final

_RELATION_NAMES: Final = """
about acl alternate amphtml api-catalog appendix apple-touch-icon apple-touch-startup-image
archives author blocked-by bookmark c2pa-manifest canonical chapter cite-as collection
compression-dictionary contents convertedfrom copyright create-form current deprecation
describedby describes disclosure dns-prefetch duplicate edit edit-form edit-media enclosure
external first geofeed glossary help hosts hub ice-server icon index intervalafter
intervalbefore intervalcontains intervaldisjoint intervalduring intervalequals
intervalfinishedby intervalfinishes intervalin intervalmeets intervalmetby intervaloverlappedby
intervaloverlaps intervalstartedby intervalstarts item last latest-version license linkset lrdd
manifest mask-icon me media-feed memento micropub modulepreload monitor monitor-group next
next-archive nofollow noopener noreferrer opener openid2.local_id openid2.provider original
p3pv1 payment pingback preconnect predecessor-version prefetch preload prerender prev preview
previous prev-archive privacy-policy profile publication rdap-active rdap-bottom rdap-down
rdap-top rdap-up related replies restconf resourcesync ruleinput search section self service
service-desc service-doc service-meta sip-trunking-capability sponsored start status stylesheet
subsection successor-version sunset tag terms-of-service timegate timemap type ugc up
version-history via webmention working-copy working-copy-of
"""

RELATIONS: Final = frozenset(_RELATION_NAMES.split())
"""The IANA registry of link relations (RFC 8288), and ``resourcesync`` of section 6.3.3."""

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")
_WEB: Final = re.compile(r"https?:", re.IGNORECASE)
_HOST: Final = re.compile(r"https?://[^/?#]+", re.IGNORECASE)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PART: Final = r"[A-Za-z0-9!#$&^_.+-]+"
_MEDIA_TYPE: Final = re.compile(rf"{_PART}/{_PART}\s*(?:;.*)?")


def is_uri(text: str) -> bool:
    """Whether a text is an absolute URI (RFC 3986); a fragment is no fault here."""
    if _URI.fullmatch(text) is None or _BAD_ESCAPE.search(text) is not None:
        return False
    return _WEB.match(text) is None or _HOST.match(text) is not None


def is_relation(token: str) -> bool:
    """Whether a relation type is registered or an absolute URI."""
    return token.lower() in RELATIONS or is_uri(token)


def is_media_type(text: str) -> bool:
    """Whether a text has the form of a media type (RFC 6838)."""
    return _MEDIA_TYPE.fullmatch(text) is not None
