"""Names beyond letters and dots, in all that is said, written or made of a mirror."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import LATER, Said, rows
from tests.support.servers.tiny_source import TinySource

NAMES = {
    "/a": "a!9",
    "/a/b": "a/b",
    "/README": "README",
    "/caf%C3%A9.html": "café.html",
    "/two%20words.txt": "two words.txt",
    "/.htaccess": ".htaccess",
    "/.well-known/x": ".well-known/x",
    "/docs/": "docs/!9",
    "/docs/index.html": "docs/index.html",
    "/x!9": "x!219",
    "/page?id=1": "page!3fid=1",
    "/50%25.txt": "50%.txt",
    "/-rf": "-rf",
    "/=1+1": "=1+1",
    "/%3Cb%3E.txt": "<b>.txt",
    "/line%09tab": "line%09tab",
    "/%FFbytes": "%FFbytes",
    "/operator%2B": "operator+",
    "/old~": "old~",
    "/it's%22": "it's\"",
}
FILES = {target: f"content of {target}".encode() for target in NAMES}
HELD = {NAMES[target]: body for target, body in FILES.items()}
OWN = ".resourcesync/"
SOME = ("a!9", "café.html", "two words.txt", ".htaccess", "<b>.txt", "50%.txt", "docs/!9", "=1+1")


@pytest.fixture
def mirror(source: TinySource, said: Said) -> Path:
    source.offer(FILES)
    assert run(["pull", source.url, "mirror"]) == 0
    said.readouterr()
    return Path("mirror")


def held(folder: Path) -> dict[str, bytes]:
    names = {
        path: path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    }
    return {name: path.read_bytes() for path, name in names.items() if not name.startswith(OWN)}


def test_each_file_has_its_name_and_why_knows_it_by_its_path_and_its_uri(
    source: TinySource, mirror: Path, said: Said
) -> None:
    assert held(mirror) == HELD
    for target, name in NAMES.items():
        asked = [name, f"{mirror}/{name}", source.url + target]
        # What is both a path of the Source and a file is the file.
        asked += [target] if target.removeprefix("/") not in HELD or target == f"/{name}" else []
        for text in asked:
            assert run(["why", "--json", str(mirror), "--", text]) == 0, text
            told = rows(said)[-1]
            assert (told["uri"], told["path"]) == (source.url + target, name)


def test_what_was_deleted_is_listed_and_restored_under_its_name(
    source: TinySource, mirror: Path, said: Said
) -> None:
    source.offer({name: body for name, body in FILES.items() if NAMES[name] not in SOME}, at=LATER)
    assert run(["pull", str(mirror), "--max-delete", "100%"]) == 0
    said.readouterr()
    assert run(["trash", "list", str(mirror)]) == 0
    told = said.readouterr().out
    for name in SOME:
        assert f"  /{name}   no longer listed" in told
        assert run(["trash", "restore", str(mirror), "--", name]) == 0, name
    assert held(mirror) == HELD
    assert run(["status", str(mirror)]) == 0


def test_an_audit_names_what_is_wrong(source: TinySource, mirror: Path, said: Said) -> None:
    for name in SOME:
        (mirror / name).write_bytes(b"spoilt")

    assert run(["audit", str(mirror)]) == 1

    told = said.readouterr().out
    for name in SOME:
        assert f"* /{name}   " in told
    assert run(["repair", str(mirror)]) == 0
    assert held(mirror) == HELD
