"""Leniencies: departures from the rules that the reader of lists tolerates, and their counts."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace


class Leniency(StrEnum):
    """Departure from the rules that a reader of lists tolerates; its value is its stable code."""

    TEXT_FORM = "text-form"
    TEXT_OPEN = "text-open"
    RSS_FORM = "rss-form"
    ATOM_FORM = "atom-form"
    FEED_UNLINKED = "feed-unlinked"
    INDEX_LISTS_ITSELF = "index-lists-itself"
    ROBOTS_LINE = "robots-line"
    SCHEME_MISSING = "scheme-missing"
    HOST_TWIN = "host-twin"
    TLS_TWIN = "tls-twin"
    SITEMAP_NAMESPACE = "sitemap-namespace"
    DECLARATION_LATE = "declaration-late"
    NAMESPACE = "namespace"
    DRAFT = "draft"
    ATTRIBUTE_PREFIXED = "attribute-prefixed"
    ATTRIBUTE_UNKNOWN = "attribute-unknown"
    ATTRIBUTE_MISPLACED = "attribute-misplaced"
    ENTRY_ATTRIBUTES = "entry-attributes"
    CAPABILITY_SPELLED = "capability-spelled"
    CAPABILITY_UNKNOWN = "capability-unknown"
    CHANGE_SPELLED = "change-spelled"
    PACKAGES_IN_CHANGELIST = "packages-in-changelist"
    PARTS_IN_RESOURCELIST = "parts-in-resourcelist"
    PARTS_IN_RESOURCEDUMP = "parts-in-resourcedump"
    PARTS_IN_CHANGELIST = "parts-in-changelist"
    PARTS_IN_CHANGEDUMP = "parts-in-changedump"
    CHANGE_TIME_AT = "change-time-at"
    TIME_ZONE = "time-zone"
    TIME_SPELLED = "time-spelled"
    TIME_INVALID = "time-invalid"
    LENGTH_INVALID = "length-invalid"
    VALUE_LONG = "value-long"
    HASH_INVALID = "hash-invalid"
    HASH_DISAGREES = "hash-disagrees"
    TIME_MODIFIED = "time-modified"
    TIME_FROM = "time-from"
    URI_RELATIVE = "uri-relative"
    URI_ENCODED = "uri-encoded"
    LINK_INCOMPLETE = "link-incomplete"
    LINK_ATTRIBUTE = "link-attribute"
    LINK_LATE = "link-late"
    RELATION_OLD = "relation-old"
    ORDER_REVERSED = "order-reversed"
    ORDER_BACKWARDS = "order-backwards"
    FOREIGN_DROPPED = "foreign-dropped"


LENIENCIES: Final = {
    Leniency.TEXT_FORM: ("G01", "The sitemap is a text file"),
    Leniency.TEXT_OPEN: ("G01", "The last line has no end, so the text may have been cut"),
    Leniency.RSS_FORM: ("G02", "The sitemap is an RSS feed, which lists recent pages only"),
    Leniency.ATOM_FORM: ("G02", "The sitemap is an Atom feed, which lists recent pages only"),
    Leniency.FEED_UNLINKED: ("", "An item of a feed has no page; it is left out"),
    Leniency.INDEX_LISTS_ITSELF: ("", "The index lists itself; that entry is left out"),
    Leniency.ROBOTS_LINE: ("", "A sitemap that robots.txt names is not there; it is left out"),
    Leniency.SCHEME_MISSING: ("G13", "An address has no http:// or https://"),
    Leniency.HOST_TWIN: ("", "An entry is on the same host with www., or without it"),
    Leniency.TLS_TWIN: ("", "An entry is http beside https: https is requested"),
    Leniency.SITEMAP_NAMESPACE: ("G02", "The namespace is missing, or is not that of sitemaps"),
    Leniency.DECLARATION_LATE: ("G01", "Blanks, byte order marks or comments come first"),
    Leniency.NAMESPACE: ("G04", "The ResourceSync namespace is not that of the standard"),
    Leniency.DRAFT: ("G05", "The document is in a draft of 2012, without rs:md"),
    Leniency.ATTRIBUTE_PREFIXED: ("G09", "An attribute of rs:md or rs:ln carries the prefix"),
    Leniency.ATTRIBUTE_UNKNOWN: ("G10", "rs:md or rs:ln has an undefined attribute"),
    Leniency.ATTRIBUTE_MISPLACED: ("", "An attribute of rs:md is not for such an entry"),
    Leniency.ENTRY_ATTRIBUTES: ("G11", "An entry has attributes"),
    Leniency.CAPABILITY_SPELLED: ("G07", "A capability is spelled differently"),
    Leniency.CAPABILITY_UNKNOWN: (
        "G07",
        "An entry has a capability that this version does not know",
    ),
    Leniency.CHANGE_SPELLED: ("G33", "A change is spelled differently"),
    Leniency.PACKAGES_IN_CHANGELIST: ("CH03", "The entries of the Change List are packages"),
    Leniency.PARTS_IN_RESOURCELIST: ("RL08", "The entries of the Resource List are Resource Lists"),
    Leniency.PARTS_IN_RESOURCEDUMP: ("RD02", "The entries of the Resource Dump are Resource Dumps"),
    Leniency.PARTS_IN_CHANGELIST: ("CH03", "The entries of the Change List are Change Lists"),
    Leniency.PARTS_IN_CHANGEDUMP: ("CD03", "The entries of the Change Dump are Change Dumps"),
    Leniency.CHANGE_TIME_AT: ("G37", "The time of a change is in its at"),
    Leniency.TIME_ZONE: ("G17", "A time has no time zone; it is read as UTC"),
    Leniency.TIME_SPELLED: ("G17", "A time is not a W3C Datetime, but its meaning is clear"),
    Leniency.TIME_INVALID: ("G17", "A time cannot be read; it is ignored"),
    Leniency.LENGTH_INVALID: ("G26", "A length is not a number of bytes; it is ignored"),
    Leniency.VALUE_LONG: ("", "A value has too many characters; it is ignored"),
    Leniency.HASH_INVALID: ("G28", "A digest cannot be read; it is ignored"),
    Leniency.HASH_DISAGREES: ("G29", "Digests of one algorithm disagree; they are ignored"),
    Leniency.TIME_MODIFIED: ("G36", "The time of the document is in its modified"),
    Leniency.TIME_FROM: ("G38", "The time of a snapshot is in its from"),
    Leniency.URI_RELATIVE: ("G13", "A URI is relative; it is resolved against the document's"),
    Leniency.URI_ENCODED: ("G13", "A URI has invalid characters; they are percent-encoded"),
    Leniency.LINK_INCOMPLETE: ("G23", "A link has no rel or no usable href; it is left out"),
    Leniency.LINK_ATTRIBUTE: ("", "An attribute of a link cannot be used"),
    Leniency.LINK_LATE: ("G22", "A link of the root comes after the entries; it is left out"),
    Leniency.RELATION_OLD: ("G43", "The way up is named as before 0.9.1"),
    Leniency.ORDER_REVERSED: ("CH05", "The newest change comes first; the order is reversed"),
    Leniency.ORDER_BACKWARDS: ("CH05", "The newest change comes first; the order is left as it is"),
    Leniency.FOREIGN_DROPPED: ("", "Too many elements of other communities to store"),
}
"""For each, the rule that it breaks, if any, and a sentence."""


class CountedLeniency(msgspec.Struct, frozen=True, kw_only=True):
    """A leniency that was needed."""

    code: Leniency  # its stable code
    rule: str  # the rule that is broken, as `validate` names it; empty for none
    reason: str  # a sentence for people
    count: int  # number of entries, or of other places, that needed it
    uri: str  # the first document or entry
    line: int = 0  # the line in that document, 1-based; 0 if it has none


class LeniencyTally:
    """A tally of leniencies."""

    def __init__(self, rows: Iterable[CountedLeniency] = ()) -> None:
        self._rows: dict[Leniency, CountedLeniency] = {}
        self.add(rows)

    def __copy__(self) -> "LeniencyTally":
        return LeniencyTally(self.rows)

    @property
    def rows(self) -> tuple[CountedLeniency, ...]:
        """The leniencies so far, each once, in the order in which they were met."""
        return tuple(self._rows.values())

    def add(self, rows: Iterable[CountedLeniency]) -> None:
        """Add leniencies that were counted elsewhere."""
        for row in rows:
            known = self._rows.get(row.code)
            self._rows[row.code] = (
                row if known is None else replace(known, count=known.count + row.count)
            )

    def note(self, code: Leniency, uri: str) -> None:
        """Count one leniency that no document shows by itself."""
        rule, reason = LENIENCIES[code]
        self.add([CountedLeniency(code=code, rule=rule, reason=reason, count=1, uri=uri)])


def leniency_fields(row: CountedLeniency) -> dict[str, object]:
    """Return the fields of the event about a leniency."""
    return msgspec.structs.asdict(row) | {"code": row.code.value}
