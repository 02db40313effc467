"""``validate``: whole Sources, samples, formats, policies; packages and their dumps."""

import hashlib
import re
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving.applications import LateApplication, find_tree
from resourcesync.cli.main import run
from resourcesync.cli.render.validate import encode_event, render_github
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.source.publication_options import PublishRequest
from resourcesync.source.stored_plan import PublicationStep
from resourcesync.validator import crawl
from resourcesync.validator.results import CutShort
from resourcesync.validator.rule import RULES, RuleFinding
from tests.support.commands.command_line import LATER, Said, rows
from tests.support.documents.packages import nested
from tests.support.rules.judged import OPEN, UP, broken, code, codes, judged, offer, write
from tests.support.servers.tiny_source import TinySource


def test_what_an_author_writes_cannot_fool_the_terminal(said: Said) -> None:
    text = f"{OPEN}{UP}<rs:md capability='x\x9b\u202e'/></urlset>"

    run(["validate", write("list.xml", text)])

    assert not re.search("[\x80-\x9f\u202e]", said.readouterr().out)


def test_of_a_resource_that_changed_since_the_last_telling_counts(
    source: TinySource, said: Said
) -> None:
    offer(source)
    source.put("/objects/0001.txt", b"new")
    del source.answers["/objects/0002.txt"]
    digest = hashlib.sha256(b"new").hexdigest()
    changes = [
        f"<url><loc>{source.url}/objects/000{name}.txt</loc>"
        f'<rs:md change="{change}" datetime="{LATER}"{more}/></url>'
        for name, change, more in [
            ("1", "updated", f' hash="sha-256:{digest}" length="3"'),
            ("2", "deleted", ""),
            ("3", "deleted", ""),
        ]
    ]
    up = f'<rs:ln rel="up" href="{source.url}/capabilitylist.xml"/>'
    head = f'{up}<rs:md capability="changelist" from="{LATER}"/>'
    source.put_document("/changelist.xml", head, changes)
    body = source.answers["/capabilitylist.xml"].body.decode()
    more = source.pointer("/changelist.xml", "changelist")
    body = body.replace("</urlset>", f"{more}</urlset>")
    source.put("/capabilitylist.xml", body.encode(), "application/xml")

    run(["validate", source.url, "--sample", "100%", "--select", "HT"])

    assert codes(said.readouterr().out) == [code("HT03")]  # number 3 is still there


def test_the_parts_of_a_local_index_know_it_by_its_address(here: Path, said: Said) -> None:
    head = UP + '<rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>\n'
    root = OPEN.replace("urlset", "sitemapindex")
    part = "<sitemap><loc>http://h.example/rs/part.xml</loc></sitemap>\n</sitemapindex>"
    write("rs/index.xml", root + head + part)
    index = '<rs:ln rel="index" href="http://h.example/rs/index.xml"/>\n'
    write("rs/part.xml", OPEN + index + head + "</urlset>")

    assert run(["validate", "rs/index.xml", "--live"]) == 0

    assert code("RI05") not in codes(said.readouterr().out)


TEXTS = st.text(max_size=40)
FINDINGS = st.builds(
    RuleFinding,
    rule=st.sampled_from(list(RULES.values())),
    uri=TEXTS,
    message=TEXTS,
    line=st.integers(0, 3),
    column=st.integers(0, 30),
    length=st.integers(0, 30),
    excerpt=TEXTS,
    excerpt_column=st.integers(0, 30),
)


@given(FINDINGS)
def test_a_command_is_one_line_whatever_a_document_holds(finding: RuleFinding) -> None:
    (line,) = render_github(*encode_event(finding))
    command = line.text

    assert "\n" not in command
    assert "\r" not in command
    head, _, _ = command[2:].partition("::")
    assert re.fullmatch(
        r"(error|warning|notice) file=[^,:\n]*(,(line|col|endColumn)=\d+)*"
        r",title=RS\d+",
        head,
    )


POLICIES: dict[str, dict[str, object]] = {
    "ages": {"rotate": 0.01, "archive": 9e5, "sitemap": True, "max_entries": 3, "robots": True},
    "dropped": {"rotate": 0.01, "keep": 0.05, "archive": 9e5},
    "per-run": {"change_lists": "per-run", "archive": 9e5},
    "archive": {"change_lists": "archive"},
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_live_source_of_each_policy_breaks_no_rule(name: str, tmp_path: Path, said: Said) -> None:
    tree, clock = tmp_path / "tree", SystemClock()
    tree.mkdir()
    for number in range(5):
        (tree / f"{number}.txt").write_text(f"{number}")
    application = LateApplication()
    with ServerThread(application) as server:
        publish_tree(tree, {"url": server.uri, **POLICIES[name]}, clock=clock)
        for number in range(4):
            time.sleep(0.03)
            (tree / f"{number}.txt").write_text(f"anew {number}")
            publish_tree(tree, {}, clock=clock, asked=PublishRequest(step=PublicationStep.REBASE))
        application.application = find_tree(tree).application(clock)

        code = run(["validate", server.uri, "--live", "--json"])

    told = rows(said)
    found = [row for row in told if row["type"] == "finding" and row["severity"] != "advice"]
    assert found == []
    assert code == 0
    assert told[-1]["documents"] >= 4


def offer_many(source: TinySource, number: int) -> None:
    offer(source)
    up = f'<rs:ln rel="up" href="{source.url}/capabilitylist.xml"/>'
    md = '<rs:md capability="resourcelist" at="2026-01-02T00:00:00Z"/>'
    back = f'<rs:ln rel="index" href="{source.url}/resourcelist.xml"/>'
    names = [f"/part{number}.xml" for number in range(number)]
    for name in names:
        source.put_document(name, f"{up}{back}{md}", [])
    parts = [f"<sitemap><loc>{source.url}{name}</loc></sitemap>" for name in names]
    source.put_document("/resourcelist.xml", f"{up}{md}", parts)
    text = source.answers["/resourcelist.xml"].body.decode()
    source.put(
        "/resourcelist.xml", text.replace("urlset", "sitemapindex").encode(), "application/xml"
    )


def asked_documents(source: TinySource) -> set[str]:
    return {asked.target for asked in source.asked} - {"/robots.txt", "/"}


def test_it_stops_at_its_limit_and_says_so(source: TinySource, said: Said) -> None:
    offer_many(source, 10)

    assert run(["validate", source.url, "--live", "--max-documents", "5"]) == 0

    lines = said.readouterr().out.splitlines()
    assert lines[-2] == (
        f"{source.url}: warning: only the first 5 documents were checked, and more are listed;"
        " --max-documents sets the limit"
    )
    assert lines[-1] == (
        "Checked 5 documents, 12 entries: 0 errors, 0 warnings; not all documents were checked"
    )
    assert len(asked_documents(source)) == 5
    assert run(["validate", source.url, "--live", "--max-documents", "5", "-q"]) == 0
    assert said.readouterr().out.splitlines() == [lines[-1]]


def test_where_more_is_listed_than_is_kept_all_documents_are_judged_all_the_same(
    source: TinySource, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer_many(source, 4)
    monkeypatch.setattr(crawl, "MAX_TARGETS", 3)

    assert run(["validate", source.url, "--live"]) == 0

    lines = said.readouterr().out.splitlines()
    assert lines[-2] == (
        f"{source.url}: warning: 7 documents list more than can be stored:"
        " their relations were checked only in part"
    )
    assert lines[-1].endswith("; not all documents were checked")
    assert len(asked_documents(source)) == 7
    assert run(["validate", source.url, "--live", "--fail-on", "warning", "-q"]) == 1

    monkeypatch.setattr(crawl, "MAX_TARGETS", 6)
    assert run(["validate", source.url, "--live", "-q"]) == 0
    assert "not all" not in said.readouterr().out.splitlines()[-1]


def test_what_is_missing_is_not_held_against_a_source_that_was_not_read_whole(
    source: TinySource,
) -> None:
    offer_many(source, 3)
    target = f"{source.url}/capabilitylist.xml"
    body = source.answers["/capabilitylist.xml"].body
    source.put("/capabilitylist.xml", body.replace(b'rel="up"', b'rel="x"'), "application/xml")

    assert broken(judged(target, live=True), "SD09") != []
    cut = judged(target, live=True, most_documents=2)

    assert broken(cut, "SD09") == []
    assert [item.documents for item in cut if isinstance(item, CutShort)] == [2]


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
    assert ", 12 of 12 resources, 1 of 1 package member, " in text  # not counted twice
    assert f"{source.url}/gone.zip: missing failed: " in text


@pytest.fixture
def dumped(tree: Path, source: TinySource, said: Said) -> Path:
    assert run(["publish", str(tree), "--url", source.url]) == 0
    for name in ("0001", "0002"):
        (tree / f"objects/{name}.txt").write_text(f"{name} is another")
    assert run(["publish", str(tree), "--dumps", "all"]) == 0
    said.readouterr()
    return tree


def test_no_resource_of_a_folder_counts_as_checked(dumped: Path, said: Said) -> None:
    (dumped / "objects/0003.txt").unlink()
    assert run(["publish", str(dumped), "--dumps", "all"]) == 0
    (dumped / "objects/0004.txt").unlink()

    assert run(["validate", str(dumped)]) == 0
    text = said.readouterr().out
    assert ", 0 of 11 resources, 13 of 13 package members: 0 errors" in text
    assert "no resource was fetched" in text
    assert run(["validate", str(dumped), "--sample", "100%"]) == 2


def found(tree: Path, pattern: str) -> Path:
    (path,) = (tree / "resourcesync").glob(pattern)
    return path


def edited(path: Path, old: str, new: str) -> None:
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
    package.write_bytes(package.read_bytes()[:-1])
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
