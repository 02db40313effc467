"""A Destination that chooses Change Lists as EHRI's rs-aggregator and CORE's copy of it do.

A Change List is dated by its end, or without one by its beginning, and is skipped unless that is
later than the last visit. A Resource List that is newer is read as a whole, and what it lacks is
deleted.
"""

import urllib.request
from xml.etree import ElementTree as ET

_NS = {
    "s": "http://www.sitemaps.org/schemas/sitemap/0.9",
    "rs": "http://www.openarchives.org/rs/terms/",
}


class AggregatorClient:
    """The client; ``copies`` are its files by address, ``described_by`` the links of its entries.

    Args:
        source: The address of the Source Description.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._last = ""
        self.copies: dict[str, bytes] = {}
        self.described_by: dict[str, str] = {}

    def visit(self) -> int:
        """Synchronize once; return how many resources were fetched or deleted."""
        (capability_list,) = self._pointers(self._source)
        lists = self._pointers(capability_list)
        by_kind = {kind: address for address, kind in lists.items()}
        document = self._document(by_kind["resourcelist"])
        at = self._about(document).get("at", "")
        if at > self._last:
            self._last, self.copies = at, {}
            return sum(self._apply(entry) for entry in document.findall("s:url", _NS))
        done = 0
        newest = self._last
        for address in self._change_lists(by_kind["changelist"]):
            found = self._document(address)
            about = self._about(found)
            date = about.get("until") or about.get("from", "")
            if date <= self._last:
                continue
            newest = max(newest, date)
            done += sum(self._apply(entry) for entry in found.findall("s:url", _NS))
        self._last = newest
        return done

    def _change_lists(self, address: str) -> list[str]:
        parts = [
            element.text or ""
            for element in self._document(address).findall(".//s:sitemap/s:loc", _NS)
        ]
        return parts or [address]

    def _apply(self, entry: ET.Element) -> int:
        address = entry.findtext("s:loc", "", _NS)
        about = entry.find("rs:md", _NS)
        if about is not None and about.get("change") == "deleted":
            self.copies.pop(address, None)
            return 1
        for link in entry.findall("rs:ln", _NS):
            if link.get("rel") == "describedby":
                self.described_by[address] = link.get("href", "")
        self.copies[address] = self._get(address)
        return 1

    def _pointers(self, address: str) -> dict[str, str]:
        """Return what a document leads to: capabilities by their addresses."""
        entries = self._document(address).findall("s:url", _NS)
        return {
            entry.findtext("s:loc", "", _NS): self._about(entry)["capability"] for entry in entries
        }

    def _about(self, element: ET.Element) -> dict[str, str]:
        found = element.find("rs:md", _NS)
        return {} if found is None else dict(found.attrib)

    def _document(self, address: str) -> ET.Element:
        return ET.fromstring(self._get(address))

    def _get(self, address: str) -> bytes:
        with urllib.request.urlopen(address, timeout=20) as answer:
            body: bytes = answer.read()
            return body
