"""``validate`` on packages: the manifest, the members, and the dumps that list them."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.command_line import Said
from tests.support.judged import OPEN, UP, code, codes, offer, write
from tests.support.tiny_source import TinySource

MANIFEST = (
    OPEN
    + UP
    + '<rs:md capability="resourcedump-manifest" at="2026-01-01T00:00:00Z"/>\n'
    + "<url><loc>http://h.example/a</loc>"
    + '<rs:md type="text/plain" path="/a.txt" length="5" hash="md5:{}"/></url>\n</urlset>\n'
)
HELLO = hashlib.md5(b"hello").hexdigest()


def package(manifest: str | None, **members: bytes) -> str:
    with zipfile.ZipFile("part.zip", "w") as writing:
        if manifest is not None:
            writing.writestr("manifest.xml", manifest)
        for name, body in members.items():
            writing.writestr(name.replace("_", "."), body)
    return "part.zip"


def test_a_sound_package_has_no_finding(said: Said) -> None:
    assert run(["validate", package(MANIFEST.format(HELLO), a_txt=b"hello")]) == 0

    text = said.readouterr().out
    assert text == "Checked 1 document, 1 entry, 1 of 1 resource: 0 errors, 0 warnings\n"


@pytest.mark.parametrize(
    ("manifest", "members", "rule"),
    [
        (None, {"a_txt": b"hello"}, "RM01"),
        (MANIFEST.format(HELLO), {}, "RM06a"),
        (MANIFEST.format(HELLO), {"a_txt": b"hallo"}, "RM07"),
        (MANIFEST.format(HELLO), {"a_txt": b"hello!"}, "RM07"),
        (MANIFEST.format(HELLO), {"a_txt": b"hello", "b_txt": b""}, "RM06b"),
        (MANIFEST.format(HELLO).replace("/a.txt", "a.txt/"), {"a_txt": b"hello"}, "RM05a"),
    ],
)
def test_a_package_that_is_not_what_its_manifest_says_is_found(
    manifest: str | None, members: dict[str, bytes], rule: str, said: Said
) -> None:
    run(["validate", package(manifest, **members)])

    assert code(rule) in codes(said.readouterr().out)


def test_a_file_that_is_no_package_fails(said: Said) -> None:
    assert run(["validate", write("part.zip", "no zip at all")]) != 0


def test_a_package_is_judged_over_the_network_too(source: TinySource, said: Said) -> None:
    name = package(MANIFEST.format(HELLO), a_txt=b"hallo")
    source.put("/part.zip", Path(name).read_bytes(), "application/zip")

    assert run(["validate", f"{source.url}/part.zip"]) == 1

    text = said.readouterr().out
    assert f"{source.url}/part.zip#/manifest.xml:5:" in text
    assert codes(text) == [code("RM07")]


def test_a_sample_opens_packages_of_dumps(source: TinySource, said: Said) -> None:
    offer(source)
    name = package(MANIFEST.format(HELLO), a_txt=b"hallo")
    source.put("/part.zip", Path(name).read_bytes(), "application/zip")
    other = MANIFEST.format(HELLO).replace("2026-01-01", "2026-01-02")
    source.put("/manifest.xml", other.encode(), "application/xml")
    pointers = [source.pointer(f"/{it}.xml", it) for it in ("resourcelist", "resourcedump")]
    source.put_document("/capabilitylist.xml", '<rs:md capability="capabilitylist"/>', pointers)
    up = f'<rs:ln rel="up" href="{source.url}/capabilitylist.xml"/>'
    source.put_document(
        "/resourcedump.xml",
        f'{up}<rs:md capability="resourcedump" at="2026-01-01T00:00:00Z"/>',
        [
            (
                f'<url><loc>{source.url}/part.zip</loc><rs:md type="application/zip"/>'
                f'<rs:ln rel="contents" href="{source.url}/manifest.xml"/></url>'
            ),
            f"<url><loc>{source.url}/gone.zip</loc></url>",
        ],
    )

    assert run(["validate", source.url, "--sample", "100%", "--select", "RM07,RD04b"]) == 3

    text = said.readouterr().out
    assert sorted(codes(text)) == sorted([code("RM07"), code("RD04b")])
    assert f"{source.url}/gone.zip: missing failed: " in text
