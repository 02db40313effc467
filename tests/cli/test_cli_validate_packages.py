"""``validate`` on packages: the manifest, the members, and the dumps that list them."""

import hashlib
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.documents.packages import nested
from tests.support.rules.judged import OPEN, UP, code, codes, offer
from tests.support.servers.tiny_source import TinySource

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


def test_the_parts_of_a_nested_manifest_are_not_missed(said: Said) -> None:
    part = MANIFEST.format(HELLO).encode()
    Path("part.zip").write_bytes(nested({"/one.xml": part}, {"a.txt": b"hello"}))

    assert run(["validate", "part.zip"]) == 1

    told = codes(said.readouterr().out)
    assert code("RM09") in told
    assert not {code("RM06a"), code("RM06b"), code("RM07")} & set(told)


def test_a_sample_opens_packages_of_dumps(source: TinySource, said: Said) -> None:
    offer(source)
    name = package(MANIFEST.format(HELLO), a_txt=b"hallo")
    source.put("/part.zip", Path(name).read_bytes(), "application/zip")
    other = MANIFEST.format(HELLO).replace("2026-01-01", "2026-01-02")
    source.put("/manifest.xml", other.encode(), "application/xml")
    pointers = [source.pointer(f"/{name}.xml", name) for name in ("resourcelist", "resourcedump")]
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
    assert ", 12 of 12 resources, 1 in packages, " in text  # not counted twice
    assert f"{source.url}/gone.zip: missing failed: " in text


@pytest.fixture
def dumped(tree: Path, source: TinySource, said: Said) -> Path:
    assert run(["publish", str(tree), "--url", source.url]) == 0
    for name in ("0001", "0002"):
        (tree / f"objects/{name}.txt").write_text(f"{name} is another")
    assert run(["publish", str(tree), "--dumps", "all"]) == 0
    said.readouterr()
    return tree


def found(tree: Path, pattern: str) -> Path:
    (path,) = (tree / "resourcesync").glob(pattern)
    return path


def edited(path: Path, old: str, new: str) -> None:
    """Change a document as no publisher would."""
    text = path.read_text()
    assert re.search(old, text)
    path.write_text(re.sub(old, new, text))


def packed_again(path: Path, edit: Callable[[str, bytes], bytes | None]) -> None:
    with zipfile.ZipFile(path) as reading:
        members = {name: reading.read(name) for name in reading.namelist()}
    with zipfile.ZipFile(path, "w") as writing:
        for name, body in members.items():
            if (changed := edit(name, body)) is not None:
                writing.writestr(name, changed)


DAMAGES: list[tuple[str, Callable[[Path], object]]] = [
    ("RM10", lambda path: path.write_bytes(path.read_bytes()[:-30])),
    ("RM10", lambda path: path.write_bytes(b"no package")),
    ("RM10", lambda path: path.write_bytes(b"")),
    ("RM01", lambda path: packed_again(path, lambda n, b: None if n == "manifest.xml" else b)),
    ("RM06a", lambda path: packed_again(path, lambda n, b: None if "0003" in n else b)),
    ("RM07", lambda path: packed_again(path, lambda n, b: b"other" if "0003" in n else b)),
]


def test_what_is_no_package_is_not_called_a_plain_sitemap(here: Path, said: Said) -> None:
    (here / "part.zip").write_bytes(b"no package")

    assert run(["validate", "part.zip"]) == 1

    assert "sitemap" not in said.readouterr().out


@pytest.mark.parametrize(("rule", "damage"), DAMAGES)
def test_a_package_that_is_damaged_or_lacks_something_is_an_error_and_exit_1(
    rule: str, damage: Callable[[Path], object], dumped: Path, said: Said
) -> None:
    package = found(dumped, "resourcedump-*.zip")
    damage(package)

    assert run(["validate", str(dumped)]) == 1

    text = said.readouterr().out
    assert set(codes(text)) == {code(rule), code("RD07")}  # it has not the listed length, either
    assert str(package) in text


@pytest.mark.parametrize(
    ("old", "new"), [(r'(?<=zip")? length="\d', r"\g<0>9"), ("sha-256:.", "sha-256:x")]
)
@pytest.mark.parametrize("dump", ["resourcedump.xml", "changedump.xml"])
def test_the_listed_length_and_digest_of_a_package_are_held_against_it(
    old: str, new: str, dump: str, dumped: Path, said: Said
) -> None:
    if "sha" in new:
        old, new = 'hash="sha-256:.{63}', f'hash="sha-256:{"0" * 63}'
    edited(found(dumped, dump), old, new)

    assert run(["validate", str(dumped)]) == 1

    text = said.readouterr().out
    assert codes(text) == [code("RD07")]
    assert f"{found(dumped, dump)}:" in text, "the place is where the dump lists it"


def test_a_copy_of_the_manifest_that_differs_is_an_error(dumped: Path, said: Said) -> None:
    edited(found(dumped, "changedump-*-manifest.xml"), "0002.txt", "0009.txt")

    assert run(["validate", str(dumped)]) == 1
    assert code("RD04b") in codes(said.readouterr().out)


def test_a_resource_that_no_package_has_is_found_without_copies_of_manifests(
    tree: Path, said: Said
) -> None:
    assert run(["publish", str(tree), "--dumps", "resources", "--url", "http://h.example/"]) == 0
    edited(found(tree, "resourcedump.xml"), '<rs:ln rel="contents"[^>]*>', "")
    assert run(["validate", str(tree)]) == 0
    said.readouterr()

    def edit(name: str, body: bytes) -> bytes:
        return body.replace(b"0003.txt</loc>", b"0033.txt</loc>") if "manifest" in name else body

    packed_again(found(tree, "resourcedump-*.zip"), edit)

    assert run(["validate", str(tree), "--ignore", "RD07"]) == 1
    assert codes(said.readouterr().out) == [code("CA09")]


def test_a_dump_of_this_machine_is_judged_with_its_packages_wherever_it_is_named(
    dumped: Path, said: Said
) -> None:
    dump, package = found(dumped, "changedump.xml"), found(dumped, "changedump-*.zip")
    damaged = package.read_bytes()[:-1]
    package.write_bytes(damaged)
    assert run(["validate", str(dump)]) == 1
    assert {code("RM10"), code("RD07")} == set(codes(said.readouterr().out))

    Path("loose").mkdir()
    for path in (dump, package):
        (Path("loose") / path.name).write_bytes(path.read_bytes())
    assert run(["validate", "loose"]) == 1
    text = said.readouterr().out
    assert codes(text).count(code("RM10")) == 1, "once, not twice"
    assert "not opened" not in text

    (Path("loose") / package.name).unlink()
    assert run(["validate", "loose"]) == 0
    assert "1 package was not opened" in said.readouterr().out
