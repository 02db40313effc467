"""Mirrors that are kept in a bucket, and buckets that are published, by the command line."""

import os
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote_plus
from zipfile import ZipFile

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.serving.applications import find_tree
from resourcesync.cli.main import run
from resourcesync.errors import StorageError
from resourcesync_s3 import store as objects
from resourcesync_s3.bucket import Bucket
from resourcesync_s3.store import open_store
from tests.support.commands.command_line import FILES, LATER, MIRRORED, Said, rows
from tests.support.commands.forking import Forked
from tests.support.commands.run import environment, script
from tests.support.servers.interposed import Answer, Interposed, SpoilAnswer
from tests.support.servers.object_server import ObjectServer
from tests.support.servers.tiny_source import TinySource


@pytest.fixture(autouse=True)
def own_home(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "home"))


@pytest.fixture
def other(bucket: str) -> Bucket:
    return Bucket(bucket, patience=5)


def contents(address: str) -> dict[str, bytes]:
    store = open_store(address)
    found = {key: store.open(key) for key in store.keys("") if not key.startswith(".resourcesync/")}
    return {key: stream.read() for key, stream in found.items() if stream is not None}


def own(address: str, prefix: str) -> list[str]:
    return list(open_store(address).keys(f".resourcesync/{prefix}"))


def test_a_mirror_is_kept_in_a_bucket(
    source: TinySource, bucket: str, said: Said, here: Path
) -> None:
    assert run(["pull", source.url, bucket]) == 0
    assert contents(bucket) == MIRRORED
    later = {f"/{path}": body for path, body in MIRRORED.items() if "0007" not in path}
    later["/objects/0001.txt"] = b"newer than that\n"
    for day in (2, 3):
        source.offer(later, at=f"2026-01-0{day}T00:00:00Z")
        assert run(["pull", bucket, "--delete", "absent", "--max-delete", "50%"]) == 0
    expected = {path.removeprefix("/"): body for path, body in later.items()}
    assert contents(bucket) == expected
    assert [key.endswith("-0007.txt") for key in own(bucket, "trash/")] == [True]

    said.readouterr()
    assert run(["trash", "list", bucket]) == 0
    assert said.readouterr().out.endswith("Trash     1 file, 9 B\n")
    assert run(["trash", "restore", bucket, "--all"]) == 0
    assert contents(bucket) == {**expected, "objects/0007.txt": MIRRORED["objects/0007.txt"]}
    assert run(["repair", bucket, "--delete"]) == 0
    assert run(["trash", "empty", bucket, "--all"]) == 0
    assert own(bucket, "trash/") == []
    assert contents(bucket) == expected


def test_a_mirror_whose_state_was_lost_takes_over_the_copies_in_its_bucket(
    source: TinySource, bucket: str, here: Path
) -> None:
    assert run(["pull", source.url, bucket]) == 0
    shutil.rmtree(here / "home")
    later = {f"/{path}": body for path, body in MIRRORED.items()}
    old = later["/objects/0001.txt"]
    later |= {"/objects/0001.txt": b"newer than that\n", "/objects/0099.txt": b"new\n"}
    source.offer(later, at=LATER)
    source.asked.clear()

    assert run(["pull", source.url, bucket, "-o", "state=other"]) == 0

    asked = [one.target for one in source.asked if one.target.startswith("/objects/")]
    assert sorted(asked) == ["/objects/0001.txt", "/objects/0099.txt"], "the rest is proven"
    assert contents(bucket) == {path.removeprefix("/"): body for path, body in later.items()}
    (place,) = own(bucket, "quarantine/")
    stream = open_store(bucket).open(place)
    assert stream is not None
    assert stream.read() == old, "nothing is lost, even if a new state does not know it"
    assert run(["audit", "other"]) == 0


def test_a_wrong_secret_and_a_missing_bucket_are_told_without_the_secret(
    source: TinySource, bucket: str, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["pull", source.url, "s3://no-such-bucket/x", "-o", "state=state"]) == 8
    assert "there is no bucket s3://no-such-bucket" in said.readouterr().err
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret-and-wrong")
    assert run(["pull", source.url, bucket, "-o", "state=state"]) == 8
    told = said.readouterr().err
    assert "refuses the request" in told
    assert "s3cret" not in told
    assert run(["pull", source.url, "s3://Not_A_Bucket/x", "-o", "state=state"]) == 2
    assert not Path("state").exists()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_body_that_breaks_off_is_read_on_or_not_at_all(
    bucket: str, other: Bucket, between: Interposed, *, is_replaced: bool
) -> None:
    old, new = (bytes([number]) * 2_000_000 for number in (1, 2))
    other.put("a.bin", old)
    cuts: list[str] = []

    def cut(method: str, target: str, body: bytes) -> Answer | None:
        if method != "GET" or cuts:
            return None
        cuts.append(target)
        if is_replaced:
            other.put("a.bin", new)
        return Answer(200, body[:1_000_000], len(body))

    between.spoil_answer = cut
    stream = open_store(bucket).open("a.bin")
    assert stream is not None
    with stream:
        if is_replaced:
            with pytest.raises(StorageError, match="failed while reading"):
                stream.read()
        else:
            assert stream.read() == old
    assert cuts


def test_who_writes_meanwhile_is_not_overwritten(
    source: TinySource, bucket: str, other: Bucket, between: Interposed
) -> None:
    def competes(method: str, target: str) -> Answer | None:
        if method == "PUT" and target.endswith("/objects/0003.txt"):
            between.spoil = lambda method, target: None
            other.put("objects/0003.txt", b"somebody's own\n")
        return None

    between.spoil = competes
    assert run(["pull", source.url, bucket, "-o", "state=state"]) == 0
    assert contents(bucket) == MIRRORED
    (aside,) = own(bucket, "quarantine/")
    stream = other.open(aside)
    assert stream is not None
    assert stream.read() == b"somebody's own\n"


def test_a_hold_that_was_lost_ends_the_run_and_the_next_one_goes_on(
    source: TinySource,
    bucket: str,
    other: Bucket,
    between: Interposed,
    said: Said,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def taken(method: str, target: str) -> Answer | None:
        if method == "PUT" and target.endswith("/objects/0003.txt"):
            between.spoil = lambda method, target: None
            other.put(".resourcesync/lease", b"{}")
            time.sleep(1)
        return None

    between.spoil = taken
    with monkeypatch.context() as short:
        short.setattr(objects, "LEASE_SECONDS", 2.0)
        short.setattr(objects.BucketStore, "max_in_flight", 1)  # some are put later
        assert run(["pull", source.url, bucket, "-o", "state=state"]) == 9
    assert "was lost" in said.readouterr().err
    other.put(".resourcesync/lease", b'{"who": "a", "holder": "", "seconds": 600}')
    assert run(["pull", "state"]) == 9
    assert "who    a" in said.readouterr().err
    other.remove(".resourcesync/lease")
    assert run(["pull", "state"]) == 0
    assert contents(bucket) == MIRRORED


def test_killed_in_the_middle_it_goes_on_at_once_and_another_machine_waits(
    source: TinySource, bucket: str, between: Interposed, said: Said, here: Path
) -> None:
    words = ("pull", source.url, bucket, "-o", "state=state")
    puts: list[str] = []

    def kills(method: str, target: str) -> Answer | None:
        if method == "PUT" and "/objects/" in target:
            puts.append(target)
            if len(puts) == 5:
                process.signal(signal.SIGKILL)
        return Answer(0, b"") if len(puts) >= 5 else None

    between.spoil = kills
    with open(os.devnull, "r+b") as nothing:
        streams = (nothing.fileno(),) * 3
        program, variables = script("resourcesync"), environment(here)
        with Forked(program, *words, cwd=here, env=variables, streams=streams) as process:
            assert process.wait(60) == -signal.SIGKILL
    between.spoil = lambda method, target: None
    there = contents(bucket)
    assert there.items() <= MIRRORED.items()
    assert len(there) < len(MIRRORED)
    assert run(["pull", source.url, bucket, "-o", f"state={bucket}"]) == 9
    assert "another run holds" in said.readouterr().err
    assert run(words) == 0
    assert contents(bucket) == MIRRORED
    assert own(bucket, "quarantine/") == []


@pytest.fixture
def web(object_server: ObjectServer, bucket: str) -> str:
    return f"http://127.0.0.1:{object_server.filer}/buckets/{bucket.removeprefix('s3://')}/"


@pytest.fixture
def objects_of(bucket: str) -> Bucket:
    found = Bucket(bucket, patience=5)
    for target, body in FILES.items():
        found.put(target.removeprefix("/"), body, attributes={"Content-Type": "text/plain"})
    return found


def copies(folder: str) -> dict[str, bytes]:
    paths = [path for path in Path(folder).rglob("*") if path.is_file()]
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return {path: body for path, body in found.items() if not path.startswith(".resourcesync/")}


def mirrored(bucket: str) -> dict[str, bytes]:
    """Return the copies by key: a mirror has its files as the whole host has them."""
    place = f"buckets/{bucket.removeprefix('s3://')}/"
    return {path.removeprefix(place): body for path, body in copies("mirror").items()}


def end(said: Said, *command: str) -> dict[str, object]:
    said.readouterr()
    assert run([*command, "--json"]) == 0
    return rows(said)[-1]


def test_a_bucket_becomes_a_source_in_itself_and_is_followed(
    bucket: str, objects_of: Bucket, web: str, said: Said
) -> None:
    publish = ("publish", bucket, "--url", web, "--out", bucket, "--state", "kept")
    first = end(said, *publish)
    assert (first["hashed"], first["resources"]) == (12, 12)
    found = objects_of.attributes("resourcesync/resourcelist.xml")
    assert found is not None
    assert found[1]["Content-Type"] == "application/xml; charset=utf-8"
    assert found[1]["Cache-Control"] == "no-cache"
    assert run(["pull", f"{web}resourcesync/capabilitylist.xml", "mirror"]) == 0
    assert mirrored(bucket) == MIRRORED

    objects_of.put("objects/0001.txt", b"newer than that\n")
    objects_of.put("objects/with blank & ü.txt", b"odd name\n")
    objects_of.remove("objects/0002.txt")
    second = end(said, *publish)
    counts = {name: second[name] for name in ("hashed", "created", "updated", "deleted")}
    assert counts == {"hashed": 2, "created": 1, "updated": 1, "deleted": 1}
    assert end(said, *publish)["hashed"] == 0
    assert run(["publish", "kept"]) == 0
    assert run(["pull", "mirror", "--max-delete", "50%"]) == 0
    expected = {**MIRRORED, "objects/0001.txt": b"newer than that\n"}
    del expected["objects/0002.txt"]
    expected["objects/with blank & ü.txt"] = b"odd name\n"
    assert mirrored(bucket) == expected


def test_the_documents_of_a_folder_go_into_a_bucket(
    tree: Path, bucket: str, web: str, said: Said
) -> None:
    assert run(["publish", str(tree), "--url", web, "--out", bucket]) == 0
    assert f"{bucket}/resourcesync/resourcelist.xml" in said.readouterr().out
    store, others = open_store(bucket), Bucket(bucket, patience=5)
    names = sorted(store.keys(""))
    assert ".well-known/resourcesync" in names
    assert [path.name for path in tree.iterdir()] != ["resourcesync"]
    for target, body in FILES.items():
        others.put(target.removeprefix("/"), body)
    (tree / "objects/0001.txt").write_bytes(b"newer than that\n")
    assert end(said, "publish", str(tree))["updated"] == 1
    others.put("objects/0001.txt", b"newer than that\n")
    assert run(["validate", f"{web}resourcesync/capabilitylist.xml"]) == 0
    assert run(["pull", f"{web}resourcesync/capabilitylist.xml", "mirror"]) == 0
    assert mirrored(bucket)["objects/0001.txt"] == b"newer than that\n"
    assert run(["publish", str(tree), "--dumps", "resources"]) == 0
    assert any(name.endswith(".zip") for name in store.keys("resourcesync/"))


ODD = {
    "/lead": "as in a//b; lead means the same resource, and is published",
    "objects//0001.txt": "empty name, as in a//b; objects/0001.txt means the same resource",
    "objects/../lead": "a name . or .., which URIs do not keep; lead means the same resource",
    "a//b": "its key has an empty name, as in a//b",
    "up/..": "its key has a name . or ..",
    "folder/": "the mark of a folder",
    "tab\ty": "its key contains a control character",
    "latin\\xff": "its key is not in UTF-8",
    "replaced\ufffd": "its key is none that the server can name",
    "é" * 400: "its URI is longer than 2048 characters",
}


def listed_beside(prefix: str, keys: Mapping[str, bytes]) -> SpoilAnswer:
    """Return what adds keys to a listing: this server keeps few of those that S3 keeps."""
    row = (
        "<Contents><Key>{}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        '<ETag>"d41d8cd98f00b204e9800998ecf8427e"</ETag><Size>3</Size></Contents>'
    )
    marks = "".join(row.format(f"{prefix}/{quote_plus(key)}") for key in keys.values()).encode()

    def spoil(method: str, target: str, body: bytes) -> Answer | None:
        if method != "GET" or "list-type=2" not in target:
            return None
        return Answer(200, body.replace(b"<Contents>", marks + b"<Contents>", 1))

    return spoil


def test_an_odd_key_is_left_out_and_told_and_the_rest_is_published(
    bucket: str, web: str, objects_of: Bucket, between: Interposed, said: Said
) -> None:
    objects_of.put("lead", b"the one that is meant\n")
    keys = {key: b"latin\xff" if "xff" in key else key.encode() for key in ODD}
    between.spoil_answer = listed_beside(bucket.rpartition("/")[2], keys)
    publish = ["publish", bucket, "--url", web, "--out", "out", "--state", "kept"]
    assert run([*publish, "--json"]) == 0
    told = rows(said)
    messages = [str(row["message"]) for row in told if row["type"] == "warning"]
    for key, reason in ODD.items():
        (message,) = [found for found in messages if found.startswith(f"{key} is not published: ")]
        assert reason in message
    assert (told[-1]["resources"], told[-1]["omitted"]) == (13, len(ODD))
    lists = Path("out/resourcesync/resourcelist.xml").read_text()
    assert lists.count("<loc>") == 13
    assert f"<loc>{web}lead</loc>" in lists
    assert end(said, *publish)["written"] == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], ": a folder for its catalogue"),
        (["--out", "out", "--watch"], "--watch is only for folders"),
        (["--out", "out", "--versions"], "versions and patches"),
        (["--out", "out", "--with", "x=y"], "have no option x="),
        (["--out", "out", "--auth", "x"], "--auth is only for other systems"),
        (
            ["--out", "s3://other/x", "--state", "kept", "-o", "robots=true"],
            "is no folder, where robots.txt must be",
        ),
    ],
)
def test_what_cannot_be_is_refused(bucket: str, words: list[str], error: str, said: Said) -> None:
    assert run(["publish", bucket, "--url", "https://museum.example/", *words]) == 2
    assert error in said.readouterr().err


def test_originals_do_not_become_others(
    bucket: str, objects_of: Bucket, tree: Path, said: Said
) -> None:
    url = "https://museum.example/"
    assert run(["publish", bucket, "--url", url, "--out", "out"]) == 0
    assert run(["publish", f"{bucket}/objects", "--out", "out"]) == 2
    assert "cannot be replaced by others" in said.readouterr().err
    assert run(["publish", str(tree), "--url", url]) == 0
    assert run(["publish", bucket, "--out", str(tree)]) == 2
    assert end(said, "publish", "out")["resources"] == 12


def test_two_who_publish_into_one_place_do_not_meet(
    tree: Path, bucket: str, web: str, said: Said
) -> None:
    with open_store(bucket).lock("another machine"):
        assert run(["publish", str(tree), "--url", web, "--out", bucket]) == 9
        assert "another machine" in said.readouterr().err
    assert run(["publish", str(tree), "--url", web, "--out", bucket]) == 0


def test_the_documents_of_a_catalogue_go_into_a_bucket(bucket: str, said: Said) -> None:
    Path("all.ndjson").write_text('{"uri": "https://museum.example/a", "length": 1}\n')
    assert run(["catalogue", "import", "museum.db", "all.ndjson"]) == 0
    publish = ["publish", "catalogue:museum.db", "--url", "https://museum.example/"]
    assert run([*publish, "--out", bucket]) == 0
    assert end(said, "publish", "catalogue:museum.db")["written"] == []
    stream = open_store(bucket).open("resourcesync/resourcelist.xml")
    assert stream is not None
    assert b"<loc>https://museum.example/a</loc>" in stream.read()
    assert (
        run(["publish", "ndjson:all.ndjson", "--url", "https://m.example/", "--out", bucket]) == 2
    )
    assert "needs --out: a folder" in said.readouterr().err


def test_the_objects_of_a_bucket_are_dumped_and_their_lists_served(
    bucket: str, objects_of: Bucket, web: str
) -> None:
    link = "describedby:{path}.xml only=*0001.txt always"
    assert run(["publish", bucket, "--url", web, "--out", "out", "--link", link]) == 0
    assert "0001.txt.xml" in Path("out/resourcesync/resourcelist.xml").read_text()
    assert run(["publish", "out", "--dumps", "resources"]) == 0
    (package,) = Path("out/resourcesync").glob("*.zip")
    with ZipFile(package) as opened:
        bodies = {opened.read(name) for name in opened.namelist()}
    assert set(FILES.values()) <= bodies
    found = find_tree(Path("out"))
    assert found.base == web
    assert found.application(SystemClock()) is not None
