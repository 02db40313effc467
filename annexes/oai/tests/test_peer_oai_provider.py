"""A provider that others wrote is harvested: the package ``oaipmh``, which came from pyoai."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.support.accounts.harvested_repository import BASE, HarvestedRepository, fill_with_titles

pytest.importorskip("oaipmh", reason="the package oaipmh is not installed: no foreign provider")

from oaipmh import common, error, metadata, server

BEGINNING = datetime(2026, 1, 1)  # noqa: DTZ001 - its times are naive
NAMESPACE = "http://www.openarchives.org/OAI/2.0/oai_dc/"


class Shelf:
    """What the foreign provider asks for records."""

    def __init__(self) -> None:
        self.items: dict[str, tuple[datetime, str]] = {}

    def put(self, name: str, title: str) -> None:
        moment = BEGINNING + timedelta(days=3, seconds=len(self.items))
        self.items[name] = (moment, title)

    def identify(self) -> Any:
        return common.Identify(
            repositoryName="Shelf",
            baseURL="https://repo.example/oai/request",
            protocolVersion="2.0",
            adminEmails=["shelf@repo.example"],
            earliestDatestamp=BEGINNING,
            deletedRecord="persistent",
            granularity="YYYY-MM-DDThh:mm:ssZ",
            compression=["identity"],
        )

    def listMetadataFormats(self, identifier: str | None = None) -> list[tuple[str, str, str]]:
        return [("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc.xsd", NAMESPACE)]

    def listSets(self, **_asked: object) -> list[object]:
        raise error.NoSetHierarchyError

    def listRecords(
        self,
        metadataPrefix: str,  # noqa: N803
        *,
        from_: datetime | None = None,
        until: datetime | None = None,
        cursor: int = 0,
        batch_size: int | str = 10,
    ) -> list[Any]:
        found = self._found(from_ or BEGINNING, until)
        return list(islice(found, cursor, cursor + int(batch_size)))

    def _found(self, begin: datetime, end: datetime | None) -> Iterator[Any]:
        for name, (moment, title) in self.items.items():
            if moment >= begin and (end is None or moment <= end):
                header = common.Header(None, f"oai:repo.example:{name}", moment, [], not title)
                yield header, common.Metadata(None, {"title": [title]}), None


def answering(shelf: Shelf) -> Callable[[dict[str, str]], bytes]:
    registry = metadata.MetadataRegistry()
    registry.registerWriter("oai_dc", server.oai_dc_writer)
    foreign = server.BatchingServer(shelf, registry, resumption_batch_size=4)
    return lambda asked: bytes(foreign.handleRequest(dict(asked)))


def test_a_provider_that_others_wrote_is_harvested_and_followed(tmp_path: Path) -> None:
    shelf, made = Shelf(), HarvestedRepository(tmp_path, overlap="0s")
    made.answer = answering(shelf)
    place = f"{BASE}resource/"
    expected = fill_with_titles(made, shelf.put)
    assert made.metadata() == set(expected)

    for name, title in (("3", ""), ("5", "Another"), ("new", "New")):
        shelf.put(name, title)
        future = datetime(2100, 1, 1)  # noqa: DTZ001 - its clock is the machine's
        shelf.items[name] = (future, title)
    made.follow()

    del expected[f"{place}3/oai_dc.xml"]
    expected[f"{place}5/oai_dc.xml"] = "Another"
    expected[f"{place}new/oai_dc.xml"] = "New"
    assert made.titles() == expected
    assert made.metadata() == set(expected)
