"""Sets of one host under one Source Description: published, served, validated and pulled."""

import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

import pytest

from resourcesync import Catalogue, Publisher, Resource
from resourcesync.cli.main import run
from resourcesync.model.entries import CapabilityEntry
from tests.support.commands.command_line import Said, rows
from tests.support.commands.run import files_of, free_port, resourcesync
from tests.support.commands.started import Started
from tests.support.documents.text import tell
from tests.support.servers.listening import get, static

SETS = ("files", "metadata")
OLD = 1_700_000_000


@contextmanager
def served(folder: Path, port: int) -> Iterator[None]:
    with Started("serve", str(folder), "--bind", f"127.0.0.1:{port}", cwd=folder.parent) as process:
        said = [process.stdout.readline() for _ in range(2)]
        assert said[1] == f"Pull      resourcesync pull http://127.0.0.1:{port}/\n"
        yield


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (OLD, OLD))


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def site(here: Path, port: int) -> Path:
    tables = ""
    for name in SETS:
        put(here / f"www/{name}/1.txt", f"one of {name}")
        put(here / f"www/{name}/2.txt", f"two of {name}")
        url = f"http://127.0.0.1:{port}/{name}/"
        tables += f'[source.{name}]\npath = "www/{name}"\nurl = "{url}"\nsite = "www"\n'
    (here / "resourcesync.toml").write_text(tables)
    return here / "www"


def described(site: Path) -> list[str]:
    entries = tell((site / ".well-known/resourcesync").read_bytes()).entries
    assert all(isinstance(entry, CapabilityEntry) and len(entry.links) == 1 for entry in entries)
    return [entry.uri.removesuffix("/resourcesync/capabilitylist.xml") for entry in entries]


def below(address: str) -> list[str]:
    return [f"{address}/{name}" for name in SETS]


@pytest.mark.founding(
    "0.9 §9.1", "A Description leads to the Capability Lists of several sets", "`-o site=FOLDER`"
)
@pytest.mark.parametrize("server", [static, served])
def test_two_folders_are_published_by_one_command_and_pulled_by_every_road(
    server: type[object], site: Path, port: int
) -> None:
    address = f"http://127.0.0.1:{port}"
    assert run(["publish", "--all"]) == 0
    assert described(site) == below(address)
    assert [run(["validate", str(site / name)]) for name in SETS] == [0, 0]

    with server(site, port):  # type: ignore[call-arg, attr-defined]
        assert run(["validate", "--live", address, "--fail-on", "warning"]) == 0
        assert run(["pull", address, "none", "-q"]) == 2  # which of them?
        assert run(["pull", address, "all", "--all-sets", "-q"]) == 0
        assert run(["pull", address, "named", "--set", "metadata", "-q"]) == 0
        assert run(["pull", f"{address}/files/", "below", "-q"]) == 0
        top = f"{address}/metadata/resourcesync/capabilitylist.xml"
        assert run(["pull", top, "listed", "-q"]) == 0

    files, metadata = (
        {
            f"{name}/{at}.txt": f"{number} of {name}".encode()
            for at, number in ((1, "one"), (2, "two"))
        }
        for name in SETS
    )
    assert files_of(Path("all/files")) == files_of(Path("below")) == files
    assert files_of(Path("all/metadata")) == files_of(Path("named")) == metadata
    assert files_of(Path("listed")) == metadata


def test_a_folder_that_lacks_the_description_which_is_to_be_in_it_is_not_valid(here: Path) -> None:
    put(here / "www/set/a", "a")
    assert run(["publish", "www/set", "--url", "https://museum.example/set/"]) == 0
    assert run(["validate", "www/set"]) == 0
    Path("www/set/.well-known/resourcesync").unlink()
    assert run(["validate", "www/set"]) == 1


@pytest.mark.founding("0.9 §9.2", "A Source divides its resources into sets", "`-o site=FOLDER`")
def test_one_folder_has_two_sets_and_neither_lists_what_is_of_the_other(
    here: Path, port: int, said: Said
) -> None:
    site, address = here / "www", f"http://127.0.0.1:{port}"
    put(site / "a.pdf", "file")
    put(site / "a.xml", "metadata")
    shared = ["publish", "www", "--url", f"{address}/", "-o", "site=www"]
    files = [*shared, "--exclude", "*.xml", "--out", "www/files", "--state", "state/files"]
    records = [*shared, "--include", "*.xml", "--out", "www/records", "--state", "state/records"]
    records.append("--sitemap")
    assert run([*files, "-o", "robots=true"]) == 2, "nobody reads /files/robots.txt"
    assert run(files) == run(records) == run([*files, "--rebase"]) == run(records) == 0
    assert described(site) == [f"{address}/files", f"{address}/records"]
    told = re.findall(f"Sitemap: {address}/(.*)", said.readouterr().out)
    assert [(site / name).is_file() for name in told] == [True, True]

    with served(site, port):
        assert run(["validate", "--live", address, "--fail-on", "warning"]) == 0
        assert run(["pull", address, "all", "--all-sets", "-q"]) == 0
    with static(site, port):
        assert run(["pull", address, "all", "-q"]) in {0, 2}

    assert files_of(Path("all/files")) == {"a.pdf": b"file"}
    assert files_of(Path("all/records")) == {"a.xml": b"metadata"}


def test_the_doctor_looks_at_the_mirror_of_each_set_and_once_at_their_source(
    site: Path, port: int, said: Said
) -> None:
    run(["publish", "--all"])
    with served(site, port):
        run(["pull", f"http://127.0.0.1:{port}", "all", "--all-sets", "-q"])
        put(Path("all/files/.resourcesync/quarantine/edited"), "mine")
        said.readouterr()
        assert run(["doctor", "all", "--json"]) == 0

    checks = [(row["check"], row["level"]) for row in rows(said) if row["type"] == "verdict"]
    assert [name for name, _ in checks].count("writing") == 2
    assert ("quarantine", "warning") in checks
    assert [name for name, _ in checks[-3:]] == ["tls", "clock", "lists"]


@pytest.mark.founding(
    "WWW §2.3",
    "Europeana: the mirrors of many providers are sets of one Source",
    "`publish MIRROR`",
)
@pytest.mark.parametrize(("server", "outs"), [(served, ""), (served, "lists"), (static, "lists")])
def test_mirrors_are_sets_of_the_site_that_aggregates_them(
    server: type[object], outs: str, site: Path, here: Path, port: int, said: Said
) -> None:
    assert run(["publish", "--all"]) == 0
    with static(site, port):
        address = f"http://127.0.0.1:{port}"
        assert run(["pull", address, "portal", "--all-sets", "-q"]) == 0
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    for name in SETS:
        url = f"{address}/{name}/"
        out = ["--out", f"portal/{outs}/{name}"] if outs else []
        assert run(["publish", f"portal/{name}", "--url", url, "-o", "site=portal", *out]) == 0
    assert said.readouterr().out.count("  resourcesync serve portal\n") == len(SETS)
    assert described(here / "portal") == below(f"{address}/{outs}".rstrip("/"))

    with server(here / "portal", port):  # type: ignore[call-arg, attr-defined]
        assert run(["validate", "--live", address, "--fail-on", "warning"]) == 0
        assert run(["pull", address, "copy", "--all-sets", "-q"]) == 0

    for name in SETS:
        found = files_of(Path("copy", name))
        assert sorted(found.values()) == [f"{n} of {name}".encode() for n in ("one", "two")]


def test_a_run_that_ended_before_the_description_is_healed_by_the_next(
    site: Path, port: int
) -> None:
    site.joinpath("resourcesync").write_text("in the way")
    assert run(["publish", "files"]) != 0
    assert (site / "files/resourcesync/capabilitylist.xml").exists()

    site.joinpath("resourcesync").unlink()
    assert run(["publish", "www", "--url", f"http://127.0.0.1:{port}/"]) == 2  # the place is taken
    assert run(["publish", "files"]) == 0

    assert described(site) == [f"http://127.0.0.1:{port}/files"]


def test_nothing_is_written_when_nothing_changed_and_what_is_lost_is_written_again(
    site: Path,
) -> None:
    run(["publish", "--all"])
    description = site / ".well-known/resourcesync"
    before = (description.stat().st_mtime_ns, (site / ".resourcesync/site.json").read_bytes())
    assert run(["publish", "--all"]) == 0
    after = (description.stat().st_mtime_ns, (site / ".resourcesync/site.json").read_bytes())
    assert before == after

    text = description.read_bytes()
    description.unlink()
    assert run(["publish", "metadata", "-n"]) == 0
    assert not description.exists()
    assert run(["publish", "metadata"]) == 0
    assert description.read_bytes() == text


def test_a_folder_that_had_its_own_description_shares_it_and_may_leave_again(
    site: Path, port: int
) -> None:
    url = f"http://127.0.0.1:{port}/files/"
    assert run(["publish", "www/files", "--url", url]) == 0
    own = site / "files/.well-known/resourcesync"
    assert own.exists()

    assert run(["publish", "--all"]) == 0
    assert not own.exists()

    assert run(["publish", "www/files", "-o", "site="]) == 0
    assert own.exists()
    assert described(site) == [f"http://127.0.0.1:{port}/metadata"]
    assert run(["publish", "www/metadata", "-o", "site="]) == 0
    assert not (site / ".well-known/resourcesync").exists()


def test_the_set_at_the_root_keeps_the_description_that_others_share(
    here: Path, port: int, said: Said
) -> None:
    site, address = here / "www", f"http://127.0.0.1:{port}"
    put(site / "a.txt", "root")
    put(here / "elsewhere/b.txt", "elsewhere")
    assert run(["publish", "www", "--url", address]) == 0
    other = ["publish", "elsewhere", "--url", f"{address}/b/", "-o", "site=www"]
    assert run(other) == 2
    assert run(["publish", "www", "-o", "site=www"]) == run(other) == 0
    assert described(site) == [address, f"{address}/b"]

    assert run(["publish", "www", "-o", "site="]) == 2

    assert "is shared by the sets of a site" in said.readouterr().err
    assert run(["publish", "www"]) == 0
    with served(site, port):
        assert run(["pull", address, "all", "--all-sets", "-q"]) == 0
    assert files_of(Path("all/resourcesync")) == {"a.txt": b"root"}
    assert files_of(Path("all/b")) == {"b/b.txt": b"elsewhere"}


def test_a_set_that_cannot_be_served_takes_no_other_with_it(site: Path, port: int) -> None:
    run(["publish", "--all"])
    put(site / "robots.txt", "User-agent: *")
    put(site / "secret.txt", "of no set")
    (site / "metadata/.resourcesync/catalogue.db").write_bytes(b"damaged" * 1_000)

    with served(site, port):
        address = f"http://127.0.0.1:{port}"
        assert [get(address, "/metadata/1.txt").status for _ in range(2)] == [503, 503]
        assert get(address, "/robots.txt").body == b"User-agent: *"
        for absent in ("secret.txt", ".resourcesync/site.json", "files/.resourcesync/catalogue.db"):
            assert get(address, f"/{absent}").status == 404
        assert run(["pull", f"{address}/files", "files", "-q"]) == 0
        tables = (site.parent / "resourcesync.toml").read_text()
        (site.parent / "more/new").mkdir(parents=True)
        new = tables.replace("metadata", "more").replace("www/more", "more")
        (site.parent / "resourcesync.toml").write_text(new)
        assert run(["publish", "more"]) == 2  # it is empty
        put(site.parent / "more/3.txt", "three")
        assert run(["publish", "more"]) == 0
        assert get(address, "/more/3.txt").body == b"three"


def test_a_library_and_a_catalogue_share_the_description_too(here: Path) -> None:
    put(here / "tree/a.txt", "a")
    (here / "www").mkdir()
    host = "https://museum.example"
    assert Publisher("tree", url=f"{host}/tree/", site="www").publish().resources == 1
    catalogue = Catalogue("catalogue.db")
    catalogue.fill([Resource(f"{host}/objects/1")])

    written = catalogue.publish(url=host, out="www/objects", site="www").written

    assert written[-1].name == "../.well-known/resourcesync"
    assert described(here / "www") == [f"{host}/tree", f"{host}/objects"]
    assert Publisher("tree").application() is not None


def test_sets_in_several_versions_have_the_description_of_the_newest(site: Path) -> None:
    old = ["-o", "dialect=0.9", "--change-lists", "per-run"]
    for version in (old, ["-o", "dialect=0.5", "--change-lists", "per-run"]):
        assert run(["publish", "files", *version]) in {0, 2}
    path = site / ".well-known/resourcesync"
    assert 'capability="resourcesync"' in path.read_text()

    assert run(["publish", "metadata"]) == 0

    assert 'capability="description"' in path.read_text()
    assert len(described(site)) == 2


def test_publishers_at_the_same_time_lose_no_set(here: Path) -> None:
    names = [f"set{number}" for number in range(6)]
    for name in names:
        put(here / f"www/{name}/a.txt", name)

    def publish(name: str) -> int:
        url = f"https://museum.example/{name}/"
        done = resourcesync("publish", f"www/{name}", "--url", url, "-o", "site=www", cwd=here)
        return done.code

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(publish, names)) == {0}

    assert sorted(described(here / "www")) == [f"https://museum.example/{name}" for name in names]
    assert len(json.loads((here / "www/.resourcesync/site.json").read_text())["sets"]) == 6


def test_mirrors_of_a_set_that_moves_within_its_site_follow_by_the_proposed_commands(
    site: Path, port: int, said: Said
) -> None:
    address = f"http://127.0.0.1:{port}/"
    assert [run(["publish", name, "-q"]) for name in SETS] == [0, 0]
    with static(site, port):
        assert run(["pull", address, "all", "--all-sets", "-q"]) == 0
        for name in ("one", "other"):
            assert run(["pull", address, name, "--set", "files", "-q"]) == 0
        (site / "x").mkdir()
        (site / "files").rename(site / "x/files")
        for folder in (".resourcesync", ".well-known"):
            rmtree(site / folder)
        moved = f"{address}x/files/"
        assert run(["publish", "www/x/files", "--url", moved, "-o", "site=www"]) == 0
        assert run(["publish", "metadata", "-q"]) == 0
        files = f"{moved}resourcesync/capabilitylist.xml"
        proposed = f"pull MIRROR --moved {address} --set {files}; those of --all-sets: "
        assert f"{proposed}resourcesync pull FOLDER --moved {address}\n" in said.readouterr().err

        for move in (["one", "--moved", address, "--set", files], ["all", "--moved", address]):
            assert run(["pull", *move, "-q"]) == 0
        by_set = ["other", "--moved", moved], ["other", "--moved", address, "--set", "files"]
        assert [run(["pull", *move, "-q"]) for move in by_set] == [0, 0]
    assert files_of(Path("one")) == files_of(Path("other"))
