"""``serve``: the address to pull from, and the end."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import MIRRORED, Said
from tests.support.commands.run import files_of, free_port
from tests.support.commands.started import Started
from tests.support.servers.listening import get
from tests.support.waiting import wait_until


@contextmanager
def served(*arguments: str, cwd: Path) -> Iterator[tuple[Started, list[str]]]:
    with Started("serve", *arguments, cwd=cwd) as process:
        yield process, [process.stdout.readline().rstrip() for _ in range(2)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_prints_the_address_to_pull_from_until_it_is_stopped(
    tree: Path, here: Path, number: signal.Signals
) -> None:
    address = f"http://127.0.0.1:{free_port()}/"
    run(["publish", "public", "--url", address])

    with served("public", "--bind", address[7:-1], cwd=here) as (process, lines):
        assert lines == [f"Serving   public at {address}", f"Pull      resourcesync pull {address}"]
        assert run(["pull", address, "museum", "-q"]) == 0
        process.send_signal(number)
        out, err = process.communicate(timeout=20)

    assert files_of(Path("museum")) == MIRRORED
    assert process.returncode == 0
    assert out == "Stopped   no longer served\n"
    assert err == ""


@pytest.mark.founding("0.9 §2-9", "A Source is written in this version", "`-o dialect=0.9`")
@pytest.mark.parametrize("dialect", ["0.5", "0.9.1", "1.1"])
def test_serve_serves_a_tree_in_each_version_that_publish_writes(
    dialect: str, tree: Path, here: Path
) -> None:
    address = f"http://127.0.0.1:{free_port()}/"
    publish = ["publish", "public", "--url", address, "-o", f"dialect={dialect}"]
    assert run([*publish, "--change-lists", "per-run"]) == 0

    with served("public", "--bind", address[7:-1], cwd=here) as (_, lines):
        assert run(["pull", address, "museum", "-q"]) == 0
        assert files_of(Path("museum")) == MIRRORED
        (tree / "new.txt").write_text("new")
        (tree / "objects/0003.txt").unlink()
        assert run(["publish", "public", "-q"]) == 0
        assert run(["pull", "museum", "-q"]) == 0
        with urlopen(address) as answer:
            page = answer.read().decode()

    assert lines[1] == f"Pull      resourcesync pull {address}"
    assert f"resourcesync pull {address}" in page
    assert files_of(Path("museum")) == files_of(tree)


def test_a_folder_to_be_published_is_proposed_at_the_address_of_bind(
    here: Path, said: Said
) -> None:
    (here / "new").mkdir()
    assert run(["serve", "new", "--bind", "127.0.0.1:8156"]) == 2
    assert "resourcesync publish new --url http://127.0.0.1:8156/\n" in said.readouterr().err


def test_serve_warns_when_the_lists_lead_elsewhere(tree: Path, here: Path) -> None:
    run(["publish", "public", "--url", "https://museum.example"])

    with served("public", "--bind", "127.0.0.1:0", cwd=here) as (process, lines):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)

    assert lines[1] == "Pull      not from here: the lists name another address"
    address = lines[0].split()[-1]
    warning, lists, served_at, fix = err.splitlines()
    assert warning.startswith("warning[published-elsewhere]: the lists of this tree name another")
    assert lists == "  lists   https://museum.example/, for which the tree was published"
    assert served_at == f"  served  {address}: the lists send its clients to the other address"
    assert fix.startswith(
        f"  fix     resourcesync publish public --url {address}, or behind a proxy: "
    )
    assert fix.endswith("resourcesync serve public --url https://museum.example/")


def test_serve_says_that_a_path_of_its_own_address_needs_a_site(tree: Path, here: Path) -> None:
    port = free_port()
    base = f"http://127.0.0.1:{port}/new/"
    run(["publish", "public", "--url", base])
    bound = ("--bind", f"127.0.0.1:{port}", "--url", base)
    with served("public", *bound, cwd=here) as (process, lines):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert lines[1] == "Pull      not from here: the lists name another address"
    assert f"resourcesync publish SITE/new --url {base} -o site=SITE; then: " in err

    Path("site").mkdir()
    Path("public").rename("site/new")
    assert run(["publish", "site/new", "--url", base, "-o", "site=site", "-q"]) == 0
    with served("site", *bound[:2], cwd=here):
        assert run(["pull", base, "mirror", "-q"]) == 0


@pytest.mark.parametrize("form", ["text", "json"])
def test_answers_are_logged_to_a_file_that_is_begun_again_when_it_was_moved(
    tree: Path, here: Path, form: str
) -> None:
    run(["publish", "public", "--url", "https://museum.example"])
    arguments = ["public", "--bind", "127.0.0.1:0", "--url", "https://museum.example/"]
    name = "access.ndjson" if form == "json" else "access.log"
    log, old = here / name, here / f"{name}.1"

    with served(*arguments, "--access-log", name, cwd=here) as (process, lines):
        address = lines[0].split()[-1]
        urlopen(address).read()
        wait_until(lambda: log.exists() and "/" in log.read_text())
        log.rename(old)
        wait_until(lambda: get(address, "/nope").status == 404 and log.exists())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)

    assert process.returncode == 0
    first, last = old.read_text().splitlines()[0], log.read_text().splitlines()[-1]
    if form == "json":
        assert [json.loads(line)["status"] for line in (first, last)] == [200, 404]
    else:
        assert first.startswith("127.0.0.1 - - [")
        assert '"GET /nope HTTP/1.1" 404' in last


def test_serve_answers_its_operators_elsewhere(tree: Path, here: Path) -> None:
    run(["publish", "public", "--url", "https://museum.example"])
    arguments = ["public", "--bind", "127.0.0.1:0", "--url", "https://museum.example/"]

    with served(*arguments, "--admin", ":0", cwd=here) as (process, lines):
        told = process.stdout.readline().split()
        public, admin = (line.split()[-1] for line in (lines[0], told[-1]))
        (tree / "new.txt").write_text("new")
        run(["publish", "public", "-q"])
        document = urlopen(public + "resourcesync/changelist.xml").read()
        figures = urlopen(admin + "metrics").read().decode()
        page = urlopen(admin).read().decode()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)

    assert told[0] == "Admin"
    assert b"https://museum.example/new.txt" in document
    assert 'resourcesync_source_changes{source="public"} 1' in figures
    assert "<h1>https://museum.example/</h1>" in page
    assert "changelist.xml" in page
    assert (out, err, process.returncode) == ("Stopped   no longer served\n", "", 0)
