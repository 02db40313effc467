"""Lists that may be cut, digests that resync does not know, and addresses that are none."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.compat.resync import Client, ClientFatalError
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource

FILES = {"/a.txt": b"a", "/b.txt": b"b"}


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TinySource]:
    monkeypatch.chdir(tmp_path)
    with TinySource() as made:
        made.offer(FILES)
        yield made


def client(source: TinySource) -> Client:
    made = Client()
    made.set_mappings([f"{source.url}/", "copy"])
    return made


def test_a_list_that_may_lack_what_exists_deletes_nothing(
    source: TinySource, caplog: pytest.LogCaptureFixture
) -> None:
    client(source).baseline_or_audit()
    source.put("/resourcelist.xml", f"{source.url}/b.txt".encode())  # a text that was cut

    client(source).baseline_or_audit(allow_deletion=True)

    assert set(files_of(Path("copy"))) == {"a.txt", "b.txt"}
    assert "may lack what exists" in caplog.text


def test_a_part_of_an_index_that_may_lack_what_exists_deletes_nothing(source: TinySource) -> None:
    client(source).baseline_or_audit()
    source.put("/part.txt", f"{source.url}/b.txt".encode())
    opening = '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    part = f"<sitemap><loc>{source.url}/part.txt</loc></sitemap>"
    source.put("/resourcelist.xml", f"{opening}{part}</sitemapindex>".encode())

    client(source).baseline_or_audit(allow_deletion=True)

    assert set(files_of(Path("copy"))) == {"a.txt", "b.txt"}


def test_a_digest_that_resync_does_not_know_is_verified(source: TinySource) -> None:
    digest = hashlib.sha512(b"other bytes").hexdigest()
    about = f'<rs:md hash="sha-512:{digest}" length="1"/>'
    source.offer_entries([f"<url><loc>{source.url}/b.txt</loc>{about}</url>"])

    with pytest.raises(ClientFatalError):
        client(source).baseline_or_audit()

    assert not Path("copy/b.txt").exists()


def test_an_address_that_cannot_be_split_is_refused_with_a_typed_error(source: TinySource) -> None:
    source.offer_entries(["<url><loc>http://[x/a</loc></url>"])

    with pytest.raises(ClientFatalError):
        client(source).baseline_or_audit()
