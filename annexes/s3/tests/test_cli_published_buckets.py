"""Documents into a bucket, originals out of one: published, followed, and never half."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote_plus
from zipfile import ZipFile

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.serving.applications import find_tree
from resourcesync.cli.main import run
from resourcesync_s3.bucket import Bucket
from resourcesync_s3.store import open_store
from tests.support.commands.command_line import FILES, MIRRORED, Said, rows
from tests.support.servers.interposed import Answer, Interposed, SpoilAnswer
from tests.support.servers.object_server import ObjectServer


@pytest.fixture
def web(object_server: ObjectServer, bucket: str) -> str:
    return f"http://127.0.0.1:{object_server.filer}/buckets/{bucket.removeprefix('s3://')}/"


@pytest.fixture
def objects_of(bucket: str) -> Bucket:
    """Put the files into the bucket as somebody else does."""
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
            "robots.txt can only be written into a folder",
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
