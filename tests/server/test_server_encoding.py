"""Documents in gzip: a representation of its own."""

import asyncio
import gzip
import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp

from resourcesync.server import content_encoding
from resourcesync.server.conditions_and_ranges import ResponseValidators
from resourcesync.server.content_encoding import Encoder, accepts_gzip
from resourcesync.server.files import FileState, OpenFile
from tests.support.servers.asgi import ask
from tests.support.servers.served_tree import YEAR_AGO, application, plant, settled

LIST = "/resourcesync/resourcelist.xml"
XML = b"<urlset>" + b"".join(b"<url><loc>http://x/%d</loc></url>" % n for n in range(5000))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = plant(tmp_path / "tree")
    path = root / LIST[1:]
    path.write_bytes(XML)
    os.utime(path, (YEAR_AGO, YEAR_AGO))
    return root


@pytest.fixture
def app(root: Path) -> ASGIApp:
    return application(root, settled())


def test_a_document_comes_in_gzip_where_the_client_takes_it(app: ASGIApp) -> None:
    plain = ask(app, LIST)
    packed = ask(app, LIST, fields={"accept-encoding": "br, zstd, gzip"})
    head = ask(app, LIST, fields={"accept-encoding": "gzip"}, method="HEAD")

    assert plain.body == XML
    assert gzip.decompress(packed.body) == XML
    assert len(packed.body) * 4 < len(XML)
    assert int(packed.fields["content-length"]) == len(packed.body)
    assert packed.fields["content-encoding"] == "gzip"
    assert packed.fields["vary"] == plain.fields["vary"] == "accept-encoding"
    assert packed.fields["last-modified"] == plain.fields["last-modified"]
    assert packed.fields["etag"] != plain.fields["etag"]
    assert not packed.fields["etag"].startswith("W/")
    assert (head.fields, head.body) == (packed.fields, b"")


def test_each_representation_is_asked_for_by_its_own_tag(app: ASGIApp) -> None:
    takes = {"accept-encoding": "gzip"}
    plain, packed = ask(app, LIST).fields["etag"], ask(app, LIST, fields=takes).fields["etag"]

    known = ask(app, LIST, fields={**takes, "if-none-match": packed})
    other = ask(app, LIST, fields={**takes, "if-none-match": plain})

    assert (known.status, known.body) == (304, b"")
    assert known.fields["etag"] == packed
    assert "content-encoding" not in known.fields
    assert (other.status, other.fields["content-encoding"]) == (200, "gzip")
    assert ask(app, LIST, fields={"if-none-match": packed}).status == 200


def test_a_range_is_one_of_the_coded_bytes_and_never_mixes(app: ASGIApp) -> None:
    takes = {"accept-encoding": "gzip"}
    whole = ask(app, LIST, fields=takes)
    part = {"range": "bytes=100-", "if-range": whole.fields["etag"]}

    same = ask(app, LIST, fields={**takes, **part})
    plain = ask(app, LIST, fields=part)

    assert (same.status, same.body) == (206, whole.body[100:])
    assert same.fields["content-encoding"] == "gzip"
    assert (plain.status, plain.body) == (200, XML)
    several = ask(app, LIST, fields={**takes, "range": "bytes=0-9,200-209"})
    assert (several.status, several.body) == (200, whole.body)


def test_only_documents_are_coded_and_only_where_it_pays(root: Path, app: ASGIApp) -> None:
    (root / "page.html").write_bytes(XML)
    (root / "resourcesync" / "resourcedump-x.zip").write_bytes(XML)

    for path in ("/page.html", "/resourcesync/resourcedump-x.zip"):
        answer = ask(app, path, fields={"accept-encoding": "gzip"})
        assert answer.body == XML
        assert "vary" not in answer.fields
    small = ask(app, "/resourcesync/capabilitylist.xml", fields={"accept-encoding": "gzip"})
    assert small.body == b"<urlset/>"
    assert small.fields["vary"] == "accept-encoding"


def test_a_document_that_changes_while_it_is_compressed_is_never_a_mixture(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, half = root / LIST[1:], XML[: -len(XML) // 2]
    read = content_encoding.read_document

    def meddle(opened: OpenFile, size: int, *, gzip: bool) -> bytes | None:
        body = read(opened, size, gzip=gzip)
        if size == len(XML):
            path.write_bytes(half)
        return body

    monkeypatch.setattr(content_encoding, "read_document", meddle)
    answer = ask(application(root), LIST, fields={"accept-encoding": "gzip"})

    assert gzip.decompress(answer.body) == half


def test_a_document_that_is_cut_short_meanwhile_is_not_compressed(root: Path) -> None:
    path = root / LIST[1:]
    condition = FileState.from_stat(path.stat())
    with OpenFile(os.open(path, os.O_RDONLY), condition) as opened:
        os.truncate(path, 100)

        assert asyncio.run(Encoder().encode(opened, condition, 0, gzip=True)) is None


class Files:
    """Many documents, each opened as often as one likes."""

    def __init__(self, folder: Path, number: int) -> None:
        self.paths = [folder / str(n) for n in range(number)]
        for path in self.paths:
            path.write_bytes(os.urandom(1000))

    async def encode(self, encoder: Encoder, number: int) -> bytes:
        path = self.paths[number]
        condition = FileState.from_stat(path.stat())
        with OpenFile(os.open(path, os.O_RDONLY), condition) as opened:
            body = await encoder.encode(opened, condition, number, gzip=True)
        assert body is not None
        assert zlib.decompress(body, 31) == path.read_bytes()
        return body


def test_what_is_kept_is_bounded_and_the_latest_stays(tmp_path: Path) -> None:
    files, encoder = Files(tmp_path, 12), Encoder(kept=8000)

    async def drive() -> None:
        kept = await files.encode(encoder, 0)
        sizes = [len(kept)]
        for number in range(1, 12):
            sizes.insert(0, len(await files.encode(encoder, number)))
            assert await files.encode(encoder, 0) is kept
            while sum(sizes) > 8000:
                sizes.pop(-2)  # the oldest, for the last of these is asked for all the time
            assert encoder.cached_bytes == sum(sizes)

    asyncio.run(drive())


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("gzip", True),
        ("GZIP;q=0.5", True),
        ("*", True),
        ("br, zstd, gzip", True),
        ("gzip;q=0.2, identity;q=0.8", False),
        ("gzip;q=0, *", False),
        ("gzip;q=2", False),
        ("\x00, gzip", False),
        (",".join(["x"] * 16) + ",gzip", False),
    ],
)
def test_the_client_decides_whether_it_gets_gzip(field: str, expected: bool) -> None:
    assert accepts_gzip(field) is expected


@given(st.text(alphabet="gzip;q=01.,*identy \t\x00ü", max_size=60))
def test_gzip_is_only_sent_to_who_names_it(field: str) -> None:
    assert not accepts_gzip(field) or "gzip" in field.lower() or "*" in field


def test_a_list_that_is_kept_as_it_is_never_outlives_its_state(root: Path) -> None:
    path, app = root / LIST[1:], application(root)
    before = ask(app, LIST)
    assert ask(app, LIST).body == before.body == XML

    path.write_bytes(XML[::-1])
    os.utime(path, (YEAR_AGO, YEAR_AGO))
    after = ask(app, LIST, fields={"range": "bytes=0-9", "if-range": before.fields["etag"]})

    assert (after.status, after.body) == (200, XML[::-1])
    assert "content-encoding" not in after.fields
    assert after.fields["etag"] != before.fields["etag"]


def test_a_list_too_large_to_keep_comes_from_the_disk() -> None:
    tagged = ResponseValidators(etag='"x"')

    assert Encoder().is_gzipped("", 2_000_000, tagged) is None
    assert Encoder().is_gzipped("gzip", 200_000_000, tagged) is None
    assert Encoder().is_gzipped("", 1000, tagged) is False
    assert Encoder().is_gzipped("gzip", 1000, ResponseValidators()) is None
