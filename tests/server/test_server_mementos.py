"""Mementos, TimeGates, TimeMaps and patches, asked for as RFC 7089 has it."""

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from starlette.types import ASGIApp

from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving import applications
from resourcesync.server import mementos
from resourcesync.server.conditions_and_ranges import format_http_date, parse_http_date
from tests.support.in_memory import ManualClock
from tests.support.servers.asgi import Answer, ask

BASE = "https://h.example/data/"
TEXTS = tuple(json.dumps({"b": word, "c": "x" * 240}) for word in ("one", "two"))
LINK_FORMAT = "application/link-format"
FOREVER = "max-age=31536000, immutable"
HOUR = 3_600
GATE = "/resourcesync/versions/timegate/"
MAP = "/resourcesync/versions/timemap/"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree of which a file had two versions, another one and a third was deleted."""
    root = tmp_path_factory.mktemp("tree")
    clock = ManualClock()
    for number, text in enumerate(TEXTS):
        for name in ("a b.json", "é.txt"):
            (root / name).write_text(text if name == "a b.json" else "same")
            modified = clock.now().timestamp() - 60
            os.utime(root / name, (modified, modified))
        if number == 0:
            (root / "gone.txt").write_text("gone")
        else:
            (root / "gone.txt").unlink()
        publish_tree(root, {"url": BASE, "versions": True, "patches": True}, clock=clock)
        clock.advance(hours=1)
    return root


@pytest.fixture
def app(root: Path) -> ASGIApp:
    return applications.find_tree(root).application(ManualClock())


def get(
    app: ASGIApp, uri: str, fields: Mapping[str, str] | None = None, method: str = "GET"
) -> Answer:
    path = "/" + uri.removeprefix(BASE).lstrip("/")
    return ask(app, path, fields=fields, method=method)


def listed(app: ASGIApp, name: str) -> list[tuple[str, str, str]]:
    text = get(app, MAP + name).body.decode()
    return [
        (rel, uri, moment)
        for uri, rel, moment in re.findall(
            r'<([^>]*)>; rel="([^"]*memento)"; datetime="([^"]*)"', text
        )
    ]


def test_a_timemap_lists_every_version_with_its_moment(app: ASGIApp) -> None:
    answer = get(app, MAP + "a%20b.json")
    (first, name, early), (last, two, late) = listed(app, "a%20b.json")

    assert (answer.status, answer.fields["content-type"]) == (200, "application/link-format")
    assert (first, last) == ("first memento", "last memento")
    assert answer.body.decode().splitlines()[:3] == [
        f'<{BASE}a%20b.json>; rel="original",',
        f'<{BASE}resourcesync/versions/timegate/a%20b.json>; rel="timegate",',
        f'<{BASE}resourcesync/versions/timemap/a%20b.json>; rel="self"; type="{LINK_FORMAT}",',
    ]
    assert (get(app, name).body, get(app, two).body) == tuple(text.encode() for text in TEXTS)
    moments = [parse_http_date(name) or 0 for name in (early, late)]
    assert moments[1] - moments[0] == HOUR
    assert [rel for rel, _, _ in listed(app, "gone.txt")] == ["first last memento"]


def test_a_resource_names_its_timegate_once_and_its_version_with_its_moment(app: ASGIApp) -> None:
    link = get(app, BASE + "a%20b.json").fields["link"]
    (uri, moment) = re.findall(r'<([^>]*)>; rel="memento"; datetime="([^"]*)"', link)[0]

    assert link.count('rel="timegate"') == 1
    assert get(app, uri).fields["memento-datetime"] == moment


def test_a_memento_says_what_it_is_of_and_when_and_never_changes(app: ASGIApp) -> None:
    (_, uri, moment), _ = listed(app, "a%20b.json")

    answer = get(app, uri)
    again = get(app, uri, {"if-none-match": answer.fields["etag"]})

    assert answer.fields["memento-datetime"] == moment
    assert answer.fields["content-type"] == "application/json"
    assert answer.fields["cache-control"] == FOREVER
    assert answer.fields["link"] == (
        f'<{BASE}a%20b.json>; rel="original", '
        f'<{BASE}resourcesync/versions/timegate/a%20b.json>; rel="timegate", '
        f'<{BASE}resourcesync/versions/timemap/a%20b.json>; rel="timemap";'
        ' type="application/link-format"'
    )
    assert (again.status, again.body) == (304, b"")
    head = get(app, uri, method="HEAD")
    assert (head.status, head.body, head.fields) == (200, b"", answer.fields)
    part = get(app, uri, {"range": "bytes=0-2"})
    assert (part.status, part.body) == (206, answer.body[:3])


@pytest.mark.founding("0.9 §8.5", "A TimeGate leads to any version", "`serve`")
@pytest.mark.parametrize(
    ("seconds", "version"), [(-HOUR, 0), (0, 0), (HOUR - 1, 0), (HOUR, 1), (99 * HOUR, 1)]
)
def test_a_timegate_leads_to_the_version_of_the_moment(
    app: ASGIApp, seconds: int, version: int
) -> None:
    mementos = listed(app, "a%20b.json")
    start = parse_http_date(mementos[0][2])
    assert start is not None

    answer = get(app, GATE + "a%20b.json", {"accept-datetime": format_http_date(start + seconds)})

    assert (answer.status, answer.fields["location"]) == (302, mementos[version][1])
    assert answer.fields["vary"] == "accept-datetime"
    assert f'<{BASE}a%20b.json>; rel="original"' in answer.fields["link"]
    assert f'<{mementos[0][1]}>; rel="first memento"' in answer.fields["link"]


@pytest.mark.parametrize(
    "moment",
    [
        "yesterday",
        "",
        "Thursday, 01-Jan-26 00:00:00 GMT",
        "Thu, 01 Jan 2026 00:00:00 GMT, Thu, 01 Jan 2026 00:00:00 GMT",
    ],
)
def test_a_moment_that_is_none_is_refused(app: ASGIApp, moment: str) -> None:
    answer = get(app, GATE + "a%20b.json", {"accept-datetime": moment})

    assert (answer.status, answer.fields["vary"]) == (400, "accept-datetime")


NOT_OURS = [
    "https://other.example/data/a%20b.json",
    "https://me@h.example/data/a%20b.json",
    "https://h.example/a%20b.json",
    "https://h.example/data/../data/a%20b.json",
    "https://h.example/data/.resourcesync/catalogue.db",
    "https://h.example/data/a%20b.json?x=1",
    "https://h.example/data/",
    "ftp://h.example/data/a%20b.json",
    "https%3A%2F%2Fh.example%2Fdata%2F..%2Fdata%2Fa%2520b.json",
    "https%3A%2F%2Fh.example%2Fdata%2Fa%2520b.json%23top",
    "https%3A%2F%2Fh.example%2Fdata%2F%zz",
    "https://h.example/data/https://h.example/data/a%20b.json",
    *("nothing.txt", "", "../a%20b.json", ".resourcesync/catalogue.db"),
]
VERSIONS = "/resourcesync/versions/"


@pytest.mark.parametrize(
    "path",
    [
        *(prefix + address for address in NOT_OURS for prefix in (GATE, MAP)),
        *(VERSIONS, f"{VERSIONS}20260101000000000000/a%20b.json"),
        f"{VERSIONS}99999999999999999999/a%20b.json",
        *(f"{VERSIONS}patch/20260101000000000000/a%20b.json", f"{VERSIONS}patch/"),
    ],
)
def test_what_is_not_ours_or_not_kept_is_absent(app: ASGIApp, path: str) -> None:
    assert get(app, path).status == 404


def test_a_patch_is_served_with_its_kind_and_never_changes(app: ASGIApp, root: Path) -> None:
    text = (root / "resourcesync/changelist.xml").read_text()
    [uri] = re.findall(r'terms/patch" href="([^"]*)"', text)

    answer = get(app, uri)

    assert answer.status == 200
    assert answer.fields["content-type"] == "application/json-patch+json"
    assert answer.fields["cache-control"] == FOREVER
    assert b'"two"' in answer.body


def test_a_version_of_what_is_no_longer_published_is_absent(
    root: Path, app: ASGIApp, tmp_path: Path
) -> None:
    uri, tree, clock = listed(app, "%C3%A9.txt")[0][1], tmp_path / "tree", ManualClock()
    shutil.copytree(root, tree)
    clock.advance(hours=3)
    publish_tree(tree, {"url": BASE, "versions": True, "exclude": ("é.txt",)}, clock=clock)
    closed = applications.find_tree(tree).application(clock)

    assert get(closed, uri).status == 404
    assert get(closed, MAP + "a%20b.json").status == 200


def test_a_content_that_was_harmed_is_cut_off_before_its_end(root: Path, app: ASGIApp) -> None:
    _, (_, uri, _) = listed(app, "a%20b.json")
    sha256 = get(app, uri).fields["etag"].strip('"')
    path = root / ".resourcesync/versions" / sha256[:2] / sha256
    body = path.read_bytes()
    try:
        path.write_bytes(b"x" + body[1:])
        assert get(app, uri).error is not None
        path.unlink()
        assert get(app, uri).status == 404
    finally:
        path.write_bytes(body)


def test_a_long_timemap_is_sent_piece_by_piece(
    app: ASGIApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = get(app, MAP + "a%20b.json")
    monkeypatch.setattr(mementos, "MAP_PAGE", 1)

    answer = get(app, MAP + "a%20b.json")

    assert answer.body == whole.body
    assert answer.chunks == whole.chunks + 1


@pytest.mark.parametrize("modified", [1_000_000_000, 2_000_000_000])
def test_a_version_with_a_time_that_cannot_be_has_the_moment_at_which_it_was_seen(
    tmp_path: Path, modified: int
) -> None:
    clock = ManualClock()
    clock.advance(seconds=0.7)
    for number in range(2):
        (tmp_path / "a.txt").write_text(f"version {number}")
        if number:
            os.utime(tmp_path / "a.txt", (modified, modified))
        publish_tree(tmp_path, {"url": BASE, "versions": True}, clock=clock)
        clock.advance(hours=1)
    app = applications.find_tree(tmp_path).application(clock)
    (_, name, early), (_, two, late) = listed(app, "a.txt")

    moments = [parse_http_date(name) or 0 for name in (early, late)]
    assert moments[1] - moments[0] == HOUR
    for uri, moment in ((name, early), (two, late)):
        answer = get(app, GATE + "a.txt", {"accept-datetime": moment})
        assert answer.fields["location"] == uri
