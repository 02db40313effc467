"""A second provider that others wrote is harvested and followed: the package ``oai-repo``.

It leaves records without metadata out of ``ListRecords``, so it cannot say what was deleted.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.accounts.harvested_repository import (
    BASE,
    HarvestedRepository,
    fill_with_titles,
)

oai_repo: Any = pytest.importorskip("oai_repo", reason="the package oai-repo is not installed")
etree: Any = pytest.importorskip("lxml.etree")

DC = "http://purl.org/dc/elements/1.1/"
OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
SCHEMA = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


class Shelf(oai_repo.DataInterface):  # type: ignore[misc]  # it is not installed for mypy
    """What the foreign provider asks for records."""

    limit = 4

    def __init__(self) -> None:
        self.items: dict[str, tuple[datetime, str]] = {}

    def put(self, name: str, title: str, moment: datetime | None = None) -> None:
        later = BEGINNING + timedelta(days=3, seconds=len(self.items))
        self.items[f"oai:repo.example:{name}"] = (moment or later, title)

    def get_identify(self) -> Any:
        return oai_repo.Identify(
            repository_name="Shelf",
            base_url="https://repo.example/oai/request",
            admin_email=["shelf@repo.example"],
            earliest_datestamp="2026-01-01T00:00:00Z",
            deleted_record="no",
            granularity="YYYY-MM-DDThh:mm:ssZ",
        )

    def is_valid_identifier(self, identifier: str) -> bool:
        return identifier in self.items

    def get_metadata_formats(self, identifier: str | None = None) -> list[Any]:
        return [oai_repo.MetadataFormat("oai_dc", SCHEMA, OAI_DC)]

    def get_record_header(self, identifier: str) -> Any:
        stamp = self.items[identifier][0].strftime("%Y-%m-%dT%H:%M:%SZ")
        return oai_repo.RecordHeader(identifier, stamp)

    def get_record_metadata(self, identifier: str, metadataprefix: str) -> Any:
        root = etree.Element(f"{{{OAI_DC}}}dc", nsmap={"oai_dc": OAI_DC, "dc": DC})
        etree.SubElement(root, f"{{{DC}}}title").text = self.items[identifier][1]
        return root

    def get_record_abouts(self, identifier: str) -> list[Any]:
        return []

    def list_set_specs(self, identifier: str | None = None, cursor: int = 0) -> Any:
        return [], 0, None

    def list_identifiers(
        self,
        metadataprefix: str,
        filter_from: datetime | None = None,
        filter_until: datetime | None = None,
        filter_set: str | None = None,
        cursor: int = 0,
    ) -> Any:
        found = [
            name
            for name, (moment, _) in self.items.items()
            if (filter_from is None or moment >= _in_utc(filter_from))
            and (filter_until is None or moment <= _in_utc(filter_until))
        ]
        return found[cursor : cursor + self.limit], len(found), None


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def answering(shelf: Shelf) -> Callable[[dict[str, str]], bytes]:
    provider = oai_repo.OAIRepository(shelf)
    return lambda asked: bytes(provider.process(dict(asked)))


def test_a_second_provider_that_others_wrote_is_harvested_and_followed(tmp_path: Path) -> None:
    shelf, made = Shelf(), HarvestedRepository(tmp_path, overlap="0s")
    made.answer = answering(shelf)
    place = f"{BASE}resource/"
    expected = fill_with_titles(made, shelf.put)

    future = datetime(2100, 1, 1, tzinfo=UTC)  # its clock is the machine's
    for name, title in (("5", "Another"), ("new", "New")):
        shelf.put(name, title, future)
    made.follow()

    expected |= {f"{place}5/oai_dc.xml": "Another", f"{place}new/oai_dc.xml": "New"}
    assert made.titles() == expected
    assert made.metadata() == set(expected)
