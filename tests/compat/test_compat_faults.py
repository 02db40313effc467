"""Bad input, limits and kills: errors with the names of resync, and nothing half-done."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resourcesync.compat.resync import (
    CapabilityList,
    ChangeList,
    Client,
    ClientError,
    ClientFatalError,
    ClientState,
    ListBase,
    ListBaseIndexError,
    ListBaseWithIndex,
    Mapper,
    Resource,
    ResourceContainer,
    ResourceDumpManifest,
    ResourceList,
    ResourceListBuilder,
    ResourceListOrdered,
    Sitemap,
    SitemapIndexError,
    SitemapParseError,
    SourceDescription,
    datetime_to_str,
)
from resourcesync.compat.resync.access import CONFIG, DocumentOpener, url_or_file_open
from resourcesync.errors import ResourceSyncError
from tests.support.commands.run import files_of
from tests.support.rules.judged import OPEN
from tests.support.servers.tiny_source import TinySource

HOME = "http://museum.example/"
END = "</urlset>"
LIST = '<rs:md capability="resourcelist" at="2024-03-01T00:00:00Z"/>'
CHANGES = '<rs:md capability="changelist" from="2024-03-01"/>'
ONE = f"<url><loc>{HOME}1</loc></url>"


def parse(text: str, **options: Any) -> Any:
    return Sitemap().parse_xml(io.StringIO(text), **options)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "<html><body/></html>",
        OPEN + LIST,
        f"{OPEN}{LIST}<url><lastmod>2024-03-01</lastmod></url>{END}",
        f'{OPEN}{CHANGES}<url><loc>{HOME}1</loc><rs:md change="moved"/></url>{END}',
        f'{OPEN}<rs:md capability="newlist"/>{ONE}{END}',
        '<!DOCTYPE a [<!ENTITY b "c">]>' + OPEN + END,
    ],
)
def test_a_document_that_cannot_be_used_is_refused(text: str) -> None:
    with pytest.raises(SitemapParseError) as caught:
        parse(text)

    assert isinstance(caught.value, ResourceSyncError)
    assert caught.value.code


def test_a_document_of_another_kind_is_refused() -> None:
    text = f"{OPEN}{LIST}{ONE}{END}"
    index = (
        text.replace("urlset", "sitemapindex")
        .replace("<url>", "<sitemap>")
        .replace("</url>", "</sitemap>")
    )

    with pytest.raises(SitemapIndexError, match="Got sitemap when"):
        parse(text, sitemapindex=True)
    with pytest.raises(SitemapIndexError, match="Got sitemapindex when"):
        ResourceList().parse(str_data=index)
    with pytest.raises(SitemapParseError, match="got resourcelist"):
        ChangeList().parse(str_data=text)
    with pytest.raises(SitemapParseError, match="no capability"):
        ChangeList().parse(str_data=f"{OPEN}{ONE}{END}")
    with pytest.raises(ValueError, match="Nothing to parse"):
        ResourceList().parse()
    with pytest.raises(ValueError, match="no document"):
        Sitemap().parse_xml()


def test_what_is_skipped_in_a_document_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    entry = f'<url><loc>{HOME}1</loc><lastmod>soon</lastmod><rs:ln href="{HOME}"/></url>'

    found = ResourceList()
    found.parse(str_data=f"{OPEN}{entry}{END}")

    assert [(each.uri, each.timestamp, each.ln) for each in found] == [(f"{HOME}1", None, None)]
    assert found.md == {"capability": "resourcelist"}
    assert "assuming resourcelist" in caplog.text
    assert caplog.text.count("line 3") == 2


@pytest.mark.parametrize(
    "made",
    [
        ResourceList([Resource(HOME)], md={"md_at": "soon"}, resources_class=list),
        ResourceList([Resource(HOME)], ln=[{"rel": "up"}], resources_class=list),
        ResourceList([Resource(HOME, length="many")], resources_class=list),
        ResourceDumpManifest([Resource(HOME)], resources_class=list),
        ListBaseWithIndex([Resource(HOME)], capability_name="changelist"),
        ListBaseWithIndex(
            [Resource(HOME, capability="resourcelist", md_from="2024")],
            capability_name="resourcelist",
        ),
        ResourceList([Resource(f"{HOME}\x00")], resources_class=list),
    ],
)
def test_a_list_that_would_not_be_valid_is_not_written(made: Any, tmp_path: Path) -> None:
    target = tmp_path / "list.xml"
    target.write_text("before")

    with pytest.raises(ValueError, match=r"\w"):
        made.write(str(target))

    assert [path.name for path in tmp_path.iterdir()] == ["list.xml"]
    assert target.read_text() == "before"


def test_a_list_of_an_unknown_capability_is_a_plain_sitemap(tmp_path: Path) -> None:
    made = ListBase([Resource(HOME)])
    made.write(str(tmp_path / "list.xml"))

    assert "capability" not in (tmp_path / "list.xml").read_text()
    with (tmp_path / "list.xml").open() as stream:
        assert Sitemap().parse_xml(stream).uris() == [HOME]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "list.xml").mkdir()

    with pytest.raises(OSError, match="list"):
        ResourceList().write(str(tmp_path / "list.xml"))
    with pytest.raises(ClientFatalError, match="cannot be written"):
        ClientState(str(tmp_path / "none" / "state.cfg")).set_state("a", 1)

    assert [path.name for path in tmp_path.iterdir()] == ["list.xml"]


def test_parts_and_index_do_not_mix() -> None:
    made = ResourceList(allow_multifile=False)
    made.add([Resource(f"{HOME}{number}") for number in range(3)])
    made.max_sitemap_entries = None
    assert (made.requires_multifile(), made.is_file_uri("a/b")) == (0, True)
    for call in (made.as_xml_index, made.as_xml_part):
        with pytest.raises(ListBaseIndexError, match="fit into one"):
            call()

    made.max_sitemap_entries = 2
    with pytest.raises(ListBaseIndexError, match="do not fit"):
        made.as_xml()
    with pytest.raises(ListBaseIndexError, match="no part 2"):
        made.as_xml_part(part_number=2)
    with pytest.raises(ListBaseIndexError, match="multifile disabled"):
        made.write("list.xml")
    made.allow_multifile = True
    with pytest.raises(ListBaseIndexError, match="Cannot map"):
        made.write("list.xml")
    assert "sitemapindex" in made.index_as_xml()


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TinySource]:
    monkeypatch.chdir(tmp_path)
    with TinySource() as made:
        yield made


def test_an_index_is_read_whole_or_not_at_all(source: TinySource) -> None:
    entries = [source.entry(f"/{number}", b"x") for number in range(3)]
    for number, entry in enumerate(entries):
        source.put_document(f"/part{number}.xml", LIST, [entry])
    parts = "".join(f"<sitemap><loc>{source.url}/part{n}.xml</loc></sitemap>" for n in range(3))
    index = OPEN.replace("urlset", "sitemapindex") + LIST + parts + "</sitemapindex>"
    source.put("/index.xml", index.encode())
    whole, top = ResourceList(), ResourceList()

    whole.read(f"{source.url}/index.xml")
    top.read(f"{source.url}/index.xml", index_only=True)
    del source.answers["/part1.xml"]

    assert [found.basename for found in whole] == ["0", "1", "2"]
    assert (whole.num_files, top.num_files, top.sitemapindex, len(top)) == (4, 1, True, 3)
    assert whole.bytes_read > top.bytes_read == top.content_length
    with pytest.raises(ListBaseIndexError, match=r"part1\.xml listed in sitemap index"):
        ResourceList().read(f"{source.url}/index.xml")
    with pytest.raises(ListBaseIndexError, match="support for sitemapindex disabled"):
        ResourceList(allow_multifile=False).read(f"{source.url}/index.xml")
    with pytest.raises(OSError, match="Failed to load"):
        ListBase(capability_name="resourcelist").read(f"{source.url}/none.xml")


def test_a_resource_refuses_what_it_does_not_know() -> None:
    made = Resource(HOME)

    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        Resource(HOME, size=3)
    with pytest.raises(AttributeError):
        made.size = 3
    with pytest.raises(AttributeError):
        _ = made.size
    with pytest.raises(ValueError, match="unsupported hash type crc, duplicate hash type md5"):
        made.hash = "md5:1 crc:2 md5:3 sha-1:4"
    assert (made.hash, made.md5, made.sha1, made != Resource(HOME, md5="2")) == (
        "md5:1 sha-1:4", "1", "4", True,
    )  # fmt: skip
    made.hash = ""
    assert made.hash is None
    made.contents = f"{HOME}manifest.xml"
    assert made.ln == [
        {"rel": "contents", "href": f"{HOME}manifest.xml", "type": "application/xml"}
    ]


def test_a_container_has_its_header_as_attributes() -> None:
    made = ResourceContainer(capability_name="changelist")
    made.md_from, made.md_until, made.capability = 0, "2024-03-01", "changelist"
    made.describedby, made.index = HOME, HOME
    made.add(Resource(HOME))
    made.add([Resource(f"{HOME}1")])

    assert made.md == {
        "md_from": "1970-01-01T00:00:00Z", "md_until": "2024-03-01", "capability": "changelist",
    }  # fmt: skip
    assert (made.md_at, made.capability, made[1].uri) == (None, "changelist", f"{HOME}1")
    assert (made.index, made.uris()) == (HOME, [HOME, f"{HOME}1"])
    with pytest.raises(AttributeError):
        _ = made.md_size
    ordered = ResourceList(resources_class=ResourceListOrdered)
    ordered.add([Resource(f"{HOME}2"), Resource(f"{HOME}1")])
    assert ordered.uris() == [f"{HOME}2", f"{HOME}1"]
    assert len(ListBase(iter([]), count=7)) == 7


def test_a_description_names_capability_lists_that_are_described() -> None:
    listed = CapabilityList(uri=f"{HOME}capabilitylist.xml")
    listed.describedby = f"{HOME}about.html"
    listed.add_capability(name="resourcelist", uri=f"{HOME}resourcelist.xml")
    made = SourceDescription()

    made.add_capability_list(listed)

    assert listed.has_capability("resourcelist")
    assert not listed.has_capability("changelist")
    assert made.resources.first().describedby == f"{HOME}about.html"
    with pytest.raises(StopIteration):
        SourceDescription().resources.first()


@pytest.mark.parametrize("value", [1e18, -1e18])
def test_a_time_out_of_range_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="out of range"):
        datetime_to_str(value)


def test_what_is_no_file_is_left_out_of_a_list(tmp_path: Path, caplog: Any) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "link").symlink_to(tmp_path / "a.txt")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".resourcesync" / "trash").mkdir(parents=True)
    (tmp_path / ".resourcesync" / "trash" / "b").write_text("b")
    mapper = Mapper([HOME, str(tmp_path)])

    found = ResourceListBuilder(mapper).from_disk()
    one = ResourceListBuilder(mapper).from_disk(paths=[str(tmp_path / "a.txt")])

    assert found.uris() == one.uris() == [f"{HOME}a.txt"]
    assert caplog.text.count("it is no regular file") == 2
    assert len(ResourceListBuilder(mapper).from_disk(paths=[])) == 0
    with pytest.raises(ValueError, match="mapper"):
        ResourceListBuilder().from_disk()
    with pytest.raises(ValueError, match="not supported"):
        ResourceListBuilder(mapper, ["crc"]).from_disk()


def test_a_client_that_cannot_build_says_why(tmp_path: Path) -> None:
    made = Client()
    with pytest.raises(ClientFatalError, match="No source to destination mapping"):
        made.build_resource_list()
    made.set_mappings([HOME, str(tmp_path)])
    (tmp_path / "a.txt").write_text("a")
    made.max_sitemap_entries = 7

    assert made.build_resource_list(str(tmp_path), set_path=True).max_sitemap_entries == 7
    made.exclude_patterns = ["("]
    with pytest.raises(ClientFatalError, match="Bad python regex"):
        made.build_resource_list()


def test_an_unsafe_path_of_one_resource_does_not_stop_the_others(source: TinySource) -> None:
    source.put("/b.txt", b"b")
    entries = [source.entry("/b.txt", b"b", uri=f"{source.url}/../b.txt")]
    source.put_document("/resourcelist.xml", LIST, [*entries, source.entry("/b.txt", b"b")])
    made = Client()
    made.set_mappings([source.url, "copy"])
    made.ignore_failures = True

    made.baseline_or_audit()

    assert files_of(Path("copy")) == {"b.txt": b"b"}
    assert [failed.uri for failed in made.failures] == [f"{source.url}/../b.txt"]


def test_an_empty_list_and_a_change_without_a_time_are_refused(source: TinySource) -> None:
    made = Client()
    made.set_mappings([source.url, "copy"])
    source.put_document("/resourcelist.xml", LIST, [])
    with pytest.raises(ClientFatalError, match="no resources"):
        made.baseline_or_audit(allow_deletion=True)

    entry = f'<url><loc>{source.url}/b</loc><rs:md change="deleted"/></url>'
    source.put_document("/changelist.xml", '<rs:md capability="changelist"/>', [entry])
    with pytest.raises(ClientFatalError, match="no datetime or lastmod"):
        made.incremental(from_datetime="2024-03-01")
    del source.answers["/changelist.xml"]
    with pytest.raises(ClientFatalError, match="Can't read source change list"):
        made.incremental(from_datetime="2024-03-01")


def test_a_local_source_is_copied_and_checked(source: TinySource) -> None:
    for name in ("a.txt", "b/c.txt"):
        path = Path("there", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    listing = Client(hashes=["sha-256"])
    listing.set_mappings(["there", "there"])
    listing.build_resource_list().write("there/resourcelist.xml")
    made = Client()
    made.set_mappings(["there", "here"])
    made.tries, made.timeout = 1, 5

    made.baseline_or_audit()
    Path("there/a.txt").write_text("A.txt")
    os.utime("here/a.txt", (1, 1))
    with pytest.raises(ClientFatalError, match="the list says sha-256"):
        made.baseline_or_audit()

    assert files_of(Path("here")) == {"a.txt": b"a.txt", "b/c.txt": b"b/c.txt"}
    made.set_mappings(["nowhere", "here"])
    with pytest.raises(ClientFatalError, match="Failed to find"):
        made.baseline_or_audit()


def test_a_list_may_speak_for_its_folder_only_if_that_is_asked(source: TinySource) -> None:
    source.put("/b.txt", b"b")
    source.put_document("/lists/resourcelist.xml", LIST, [source.entry("/b.txt", b"b")])
    made = Client()
    made.set_mappings([source.url, "copy"])
    made.sitemap_name = f"{source.url}/lists/resourcelist.xml"
    made.strictauth = True
    with pytest.raises(ClientFatalError, match="authority"):
        made.baseline_or_audit()

    made.strictauth = False
    made.baseline_or_audit()
    made.sitemap_name = f"{source.url}/none.xml"
    with pytest.raises(ClientError, match="Can't read"):
        made.find_resource_list()


def test_what_is_to_be_deleted_and_is_not_there_is_no_failure(
    source: TinySource, caplog: pytest.LogCaptureFixture
) -> None:
    made = Client()
    made.set_mappings([source.url, "copy"])
    os.mkdir("copy")
    os.symlink("elsewhere", "copy/link")

    assert made.delete_resource(Resource(f"{source.url}/a"), "copy/a", True) == 0
    assert made.delete_resource(Resource(f"{source.url}/a"), "other/a", True) == 0

    assert "Nothing to DELETE" in caplog.text
    assert "Failed to DELETE" in caplog.text
    assert len(made.failures) == 1
    assert os.path.islink("copy/link")


def test_settings_for_all_requests_are_checked(
    source: TinySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.put("/a.xml", b"<a/>")
    monkeypatch.setitem(CONFIG, "delay", 0.001)
    with url_or_file_open(f"{source.url}/a.xml", timeout=5) as opened:
        assert opened.read() == b"<a/>"

    with pytest.raises(ValueError, match="GET"):
        url_or_file_open(f"{source.url}/a.xml", method="HEAD")
    with DocumentOpener() as opener, pytest.raises(OSError, match="not on this machine"):
        opener.open("file://elsewhere/a.xml")


def test_a_state_is_stored_and_removed(source: TinySource) -> None:
    state = ClientState("state.cfg")
    state.set_state(f"{source.url}/a", 1.5)
    state.set_state(f"{source.url}/b", 7)
    state.set_state(f"{source.url}/a")

    assert (state.get_state(f"{source.url}/a"), state.get_state(f"{source.url}/b")) == (None, 7.0)
    Path("state.cfg").write_text("[incremental]\na = soon\n")
    with pytest.raises(ClientFatalError, match="damaged"):
        state.get_state("a")


@pytest.mark.parametrize("done", [1, 3, 6])
def test_a_killed_run_leaves_whole_copies_and_no_time(source: TinySource, done: int) -> None:
    files = {f"/{number}.bin": bytes([number]) * 400_000 for number in range(8)}
    for target, body in files.items():
        source.put(target, body)
    entries = [source.entry(target, body) for target, body in files.items()]
    source.put_document("/resourcelist.xml", LIST, entries)
    code = (
        "import sys\n"
        "from resourcesync.compat.resync import Client\n"
        "class Telling(Client):\n"
        "    def log_event(self, change):\n"
        "        print(change.uri, flush=True)\n"
        "        sys.stdin.readline()\n"
        "made = Telling()\n"
        f"made.set_mappings([{source.url!r}, 'copy'])\nmade.baseline_or_audit()"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(done):  # it waits for each answer, so it is killed before its end
            process.stdin.write(b"\n")
            assert process.stdout.readline()
        process.kill()

    found = files_of(Path("copy"))
    made = Client()
    made.set_mappings([source.url, "copy"])
    assert done <= len(found) < len(files)
    assert all(body == files[f"/{name}"] for name, body in found.items())
    assert not Path(made.status_file).exists()
    made.baseline_or_audit()
    assert {f"/{name}": body for name, body in files_of(Path("copy")).items()} == files
    assert list(Path("copy/.resourcesync/tmp").iterdir()) == []
    assert Path(made.status_file).exists()
