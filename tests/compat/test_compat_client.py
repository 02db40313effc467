"""Our client under resync's names: the same copies and words, and where it is safer, how."""

import hashlib
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resourcesync.compat.resync import Client, ClientError, ClientFatalError, MapperError, Resource
from resourcesync.compat.resync.access import CONFIG, set_url_or_file_open_config, url_or_file_open
from resourcesync.errors import DigestMismatchError, ResourceSyncError, SourceError
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import Answer, TinySource, dead_address
from tests.support.sources.side_by_side import OURS, REAL, Library, needs_resync

FILES = {"/a/one.txt": b"one\n", "/a/two": b"two\n", "/b.txt": b"b\n"}
LIBRARIES = [REAL, OURS]
LATER = "2026-02-01T00:00:00Z"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TinySource]:
    """A Source with files and a Resource List; the current folder is that of the test."""
    monkeypatch.chdir(tmp_path)
    with TinySource() as made:
        publish(made, FILES)
        yield made


def publish(source: TinySource, files: dict[str, bytes], **headers: str) -> None:
    for target, body in files.items():
        source.put(target, body, "text/plain")
    entries = [source.entry(target, body) for target, body in files.items()]
    md = '<rs:md capability="resourcelist" at="2026-01-02T00:00:00Z"/>'
    source.put_document("/resourcelist.xml", md, entries)


def announce(source: TinySource, changes: dict[str, tuple[str, bytes]], **times: str) -> None:
    """Write the Change List; a change has no body if it is a deletion."""
    entries = []
    for target, (change, body) in changes.items():
        source.put(target, body, "text/plain") if body else source.answers.pop(target, None)
        digest = f' hash="sha-256:{hashlib.sha256(body).hexdigest()}"' if body else ""
        entries.append(
            f"<url><loc>{source.url}{target}</loc><lastmod>{LATER}</lastmod>"
            f'<rs:md change="{change}" datetime="{LATER}"{digest}/></url>'
        )
    told = "".join(f' {name.strip("_")}="{value}"' for name, value in times.items())
    source.put_document("/changelist.xml", f'<rs:md capability="changelist"{told}/>', entries)


CHANGES = {
    "/a/one.txt": ("updated", b"one again\n"),
    "/c/new.txt": ("created", b"new\n"),
    "/b.txt": ("deleted", b""),
}


def client(library: Library, source: TinySource, folder: str = "copy") -> Any:
    made = library.client.Client()
    made.set_mappings([f"{source.url}/", folder])
    return made


def copies(folder: str = "copy") -> dict[str, bytes]:
    return {f"/{name}": body for name, body in files_of(Path(folder)).items()}


def messages(caplog: pytest.LogCaptureFixture, *starts: str) -> list[str]:
    said = [record.getMessage() for record in caplog.records if record.name == "resync.client"]
    return sorted(line for line in said if line.startswith(starts))


class Recording:
    """What WEKO3 does: a subclass notes what it is called with, and calls the client's own."""

    def __new__(cls, library: Library) -> Any:
        class Noting(library.client.Client):  # type: ignore[misc, name-defined]  # of either library
            def __init__(self) -> None:
                # WEKO3 passes the arguments of an older resync, one place too far to the left.
                super().__init__(None, False, False)
                self.noted: list[tuple[Any, ...]] = []

            def update_resource(self, resource: Any, filename: str, change: Any = None) -> int:
                done: int = super().update_resource(resource, filename, change)
                resource.link_add(href=filename, rel="file")
                self.noted.append((change, filename, Path(filename).read_bytes(), repr(resource)))
                return done

            def delete_resource(self, resource: Any, filename: str, change: Any = None) -> int:
                done: int = super().delete_resource(resource, filename, change)
                self.noted.append(("deleted", filename, done, Path(filename).exists()))
                return done

        return Noting()


@pytest.mark.parametrize("library", LIBRARIES, ids=repr)
class TestSideBySide:
    """Both clients, one after the other; what is expected of one is expected of the other."""

    pytestmark = needs_resync

    def test_a_baseline_copies_the_files_and_their_times(
        self, library: Library, source: TinySource, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "resync.client")
        made = client(library, source)

        made.baseline_or_audit()
        made.baseline_or_audit(audit_only=True)

        assert copies() == FILES
        assert {Path(f"copy{name}").stat().st_mtime for name in FILES} == {1767225600}
        assert messages(caplog, "created:") == [
            f"created: {source.url}{name} -> copy{name}" for name in sorted(FILES)
        ]
        assert "Status:          SYNCED (same=0, created=3, updated=0, deleted=0)" in messages(
            caplog, "Status"
        )
        assert "Status:         IN SYNC (same=3, to create=0, to update=0, to delete=0)" in (
            messages(caplog, "Status")
        )

    def test_a_second_baseline_copies_what_changed(
        self, library: Library, source: TinySource, caplog: pytest.LogCaptureFixture
    ) -> None:
        client(library, source).baseline_or_audit()
        publish(source, {"/a/one.txt": b"one and more\n", "/a/two": b"two\n"})
        caplog.set_level(logging.INFO, "resync.client")

        client(library, source).baseline_or_audit()
        stayed = copies()
        client(library, source).baseline_or_audit(allow_deletion=True)

        assert stayed == {**FILES, "/a/one.txt": b"one and more\n"}
        assert copies() == {"/a/one.txt": b"one and more\n", "/a/two": b"two\n"}
        assert messages(caplog, "deleted:") == [f"deleted: {source.url}/b.txt -> copy/b.txt"]

    def test_an_incremental_applies_changes_since_the_baseline(
        self, library: Library, source: TinySource
    ) -> None:
        client(library, source).baseline_or_audit()
        announce(source, CHANGES, from_="2026-01-01T00:00:00Z")

        client(library, source).incremental(allow_deletion=True)

        assert copies() == {
            "/a/one.txt": b"one again\n", "/a/two": b"two\n", "/c/new.txt": b"new\n",
        }  # fmt: skip

    def test_an_incremental_from_a_time_needs_no_baseline(
        self, library: Library, source: TinySource
    ) -> None:
        announce(source, CHANGES, from_="2026-01-01T00:00:00Z")
        made = client(library, source)

        made.incremental(
            change_list_uri=f"{source.url}/changelist.xml", from_datetime="2026-01-15T00:00:00Z"
        )
        made.incremental(change_list_uri="changelist.xml", from_datetime="2027-01-15T00:00:00Z")

        assert copies() == {"/a/one.txt": b"one again\n", "/c/new.txt": b"new\n"}

    def test_a_subclass_is_called_with_what_was_copied_and_deleted(
        self, library: Library, source: TinySource
    ) -> None:
        made = Recording(library)
        made.set_mappings([f"{source.url}/", "copy"])
        made.sitemap_name = f"{source.url}/resourcelist.xml"

        made.baseline_or_audit(False, False)
        made.sitemap_name = None
        announce(source, CHANGES)
        made.incremental(True, f"{source.url}/changelist.xml", "2026-01-15T00:00:00Z")

        assert [noted[:3] for noted in made.noted] == [
            *(("created", f"copy{name}", body) for name, body in sorted(FILES.items())),
            ("updated", "copy/a/one.txt", b"one again\n"),
            ("created", "copy/c/new.txt", b"new\n"),
            ("deleted", "copy/b.txt", 1),
        ]
        assert f"'uri': '{source.url}/a/one.txt'" in made.noted[0][3]
        assert "'ln': [{'rel': 'file', 'href': 'copy/a/one.txt'}]" in made.noted[0][3]

    def test_a_dry_run_and_an_audit_write_nothing(
        self, library: Library, source: TinySource
    ) -> None:
        os.mkdir("copy")
        made = client(library, source)
        made.baseline_or_audit(audit_only=True)
        made.dryrun = True

        made.baseline_or_audit(allow_deletion=True)

        assert copies() == {}
        assert not Path(".resync-client-status.cfg").exists()

    @pytest.mark.parametrize("mappings", [[], ["copy", "copy/below"], ["copy", "copy"]])
    def test_a_mapping_that_cannot_work_is_refused(
        self, library: Library, source: TinySource, mappings: list[str]
    ) -> None:
        made = library.client.Client()
        made.set_mappings(mappings)

        with pytest.raises(library.client.ClientFatalError):
            made.baseline_or_audit()

    def test_a_list_of_another_host_is_refused_unless_allowed(
        self, library: Library, source: TinySource
    ) -> None:
        entry = source.entry("/b.txt", b"b\n", uri="http://other.example/b.txt")
        source.put_document("/resourcelist.xml", '<rs:md capability="resourcelist"/>', [entry])

        with pytest.raises(library.client.ClientFatalError, match="authority"):
            client(library, source).baseline_or_audit()

    def test_no_state_and_no_time_is_refused(self, library: Library, source: TinySource) -> None:
        announce(source, CHANGES)

        with pytest.raises(library.client.ClientFatalError, match="No stored timestamp"):
            client(library, source).incremental()
        with pytest.raises(library.client.ClientFatalError, match="Bad datetime"):
            client(library, source).incremental(from_datetime="soon")

    def test_lists_are_found_from_the_source_description(
        self, library: Library, source: TinySource
    ) -> None:
        source.answers["/lists/all.xml"] = source.answers.pop("/resourcelist.xml")
        pointers = {"/.well-known/resourcesync": ("description", "/caps.xml", "capabilitylist"),
                    "/caps.xml": ("capabilitylist", "/lists/all.xml", "resourcelist")}  # fmt: skip
        for target, (kind, below, capability) in pointers.items():
            source.put_document(
                target, f'<rs:md capability="{kind}"/>', [source.pointer(below, capability)]
            )

        client(library, source).baseline_or_audit()

        assert copies() == FILES


@pytest.mark.parametrize("first", LIBRARIES, ids=repr)
@pytest.mark.parametrize("second", LIBRARIES, ids=repr)
class TestTakeover:
    """One library goes on with the files and the state of the other."""

    pytestmark = needs_resync

    def test_the_state_and_the_copies_are_taken_over(
        self, first: Library, second: Library, source: TinySource
    ) -> None:
        client(first, source).baseline_or_audit()
        if second is REAL:  # which would take our own folder for copies
            shutil.rmtree("copy/.resourcesync", ignore_errors=True)
        fetched = len(source.asked)

        client(second, source).baseline_or_audit()
        asked = [found.target for found in source.asked[fetched:]]
        announce(source, CHANGES, from_="2026-01-01T00:00:00Z")
        client(second, source).incremental(allow_deletion=True)

        assert set(asked).isdisjoint(FILES)
        assert "/b.txt" not in copies()
        assert copies()["/c/new.txt"] == b"new\n"


# --- what differs --------------------------------------------------------------------------------


def ours(source: TinySource, folder: str = "copy") -> Client:
    made: Client = client(OURS, source, folder)
    return made


def test_bytes_that_are_not_as_listed_are_never_put_in_place(source: TinySource) -> None:
    ours(source).baseline_or_audit()
    publish(source, {**FILES, "/a/two": b"two as it is listed\n"})
    source.put("/a/two", b"two, but another one\n", "text/plain")

    with pytest.raises(ClientFatalError, match="the list says") as caught:
        ours(source).baseline_or_audit()

    assert copies() == FILES
    assert caught.value.code == "length-mismatch"


def test_a_failure_that_is_ignored_is_named_and_is_not_recorded_as_done(
    source: TinySource, caplog: pytest.LogCaptureFixture
) -> None:
    del source.answers["/a/two"]
    made = ours(source)
    made.ignore_failures = True

    made.baseline_or_audit()

    assert [failed.uri for failed in made.failures] == [f"{source.url}/a/two"]
    assert messages(caplog, "Status")[-1].endswith(
        "(same=0, created=2, updated=0, deleted=0, failed=1)"
    )
    assert "PART SYNCED" in caplog.text
    with pytest.raises(ClientFatalError, match="No stored timestamp"):
        made.incremental()
    source.put("/a/two", b"two\n", "text/plain")
    made.baseline_or_audit()
    assert made.failures == []
    assert Path(".resync-client-status.cfg").exists()


@pytest.mark.parametrize("path", ["../../out.txt", "a//b", "./x", ".resourcesync/state.db", ""])
def test_a_resource_whose_path_leads_elsewhere_is_refused(
    source: TinySource, path: str, tmp_path: Path
) -> None:
    entry = source.entry("/b.txt", b"b\n", uri=f"{source.url}/{path}")
    source.put_document("/resourcelist.xml", '<rs:md capability="resourcelist"/>', [entry])

    with pytest.raises((MapperError, ClientFatalError)):
        ours(source, "deep/copy").baseline_or_audit()

    assert [found.name for found in tmp_path.rglob("*.txt")] == []


def test_a_link_in_the_folder_is_not_followed(source: TinySource, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    os.mkdir("copy")
    os.symlink(outside, "copy/a")

    with pytest.raises(ClientFatalError, match="in the way"):
        ours(source).baseline_or_audit()

    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", ["/etc/out.txt", "elsewhere/x", "copy/../x", "copy"])
def test_a_caller_cannot_write_outside_the_folders_of_the_mapping(
    source: TinySource, name: str
) -> None:
    with pytest.raises(ClientFatalError, match="not a file below"):
        ours(source).update_resource(Resource(f"{source.url}/b.txt"), name)


def test_what_is_deleted_is_in_the_trash(source: TinySource) -> None:
    ours(source).baseline_or_audit()
    publish(source, {"/b.txt": b"b\n"})

    ours(source).baseline_or_audit(allow_deletion=True)

    assert copies() == {"/b.txt": b"b\n"}
    trash = [path.read_bytes() for path in Path("copy/.resourcesync/trash").iterdir()]
    assert sorted(trash) == [b"one\n", b"two\n"]


def test_a_change_list_that_begins_after_the_last_run_is_refused(source: TinySource) -> None:
    ours(source).baseline_or_audit()
    announce(source, CHANGES, from_="2026-01-20T00:00:00Z")

    with pytest.raises(ClientFatalError, match="baseline is needed") as caught:
        ours(source).incremental()

    assert caught.value.code == "change-gap"
    assert copies() == FILES


def test_the_change_lists_of_weko3_are_followed(source: TinySource) -> None:
    """They have ``at`` in place of ``datetime``, and an index that is a ``urlset``."""
    ours(source).baseline_or_audit()
    source.put("/a/two", b"two again\n", "text/plain")
    entry = (
        f"<url><loc>{source.url}/a/two</loc><lastmod>2025-12-01T00:00:00Z</lastmod>"
        f'<rs:md change="updated" at="{LATER}"/></url>'
    )
    source.put_document("/day/changelist.xml", '<rs:md capability="changelist"/>', [entry])
    day = source.pointer("/day/changelist.xml", "changelist").replace(
        "/></url>", f' from="{LATER}" until="{LATER}"/></url>'
    )
    source.put_document("/changelist.xml", '<rs:md capability="changelist"/>', [day])

    ours(source).incremental(from_datetime="2026-01-15T00:00:00Z")

    assert copies()["/a/two"] == b"two again\n"


def test_a_start_after_the_last_run_is_not_recorded_as_if_nothing_lay_between(
    source: TinySource,
) -> None:
    ours(source).baseline_or_audit()
    announce(source, CHANGES, from_="2026-01-01T00:00:00Z")

    ours(source).incremental(from_datetime="2026-03-01T00:00:00Z")
    ours(source).incremental()

    assert copies()["/c/new.txt"] == b"new\n"


def test_a_capability_list_that_is_named_is_the_only_way_to_the_list(source: TinySource) -> None:
    made = ours(source)
    made.capability_list_uri = f"{source.url}/none.xml"

    with pytest.raises(ClientFatalError, match="Failed to find"):
        made.baseline_or_audit()


def test_a_deletion_of_what_was_created_since_reaches_the_copy(source: TinySource) -> None:
    ours(source).baseline_or_audit()
    times = ("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")
    changes = [
        f'<url><loc>{source.url}/b.txt</loc><rs:md change="{change}" datetime="{time}"/></url>'
        for change, time in zip(("created", "deleted"), times, strict=True)
    ]
    source.put_document("/changelist.xml", '<rs:md capability="changelist"/>', changes)

    ours(source).incremental(allow_deletion=True)

    assert "/b.txt" not in copies()


def test_a_list_that_is_cut_short_changes_nothing(source: TinySource) -> None:
    ours(source).baseline_or_audit()
    whole = source.answers["/resourcelist.xml"]
    source.answers["/resourcelist.xml"] = Answer(body=whole.body[:-60], headers=whole.headers)

    with pytest.raises(ClientError, match="stops before its end"):
        ours(source).baseline_or_audit(allow_deletion=True)

    assert copies() == FILES


def test_a_mirror_of_ours_is_not_written_by_the_client(source: TinySource) -> None:
    from resourcesync import Mirror

    Mirror(f"{source.url}/resourcelist.xml", "copy").pull()
    publish(source, {**FILES, "/a/two": b"two, again\n"})

    with pytest.raises(ClientFatalError, match="is a mirror"):
        ours(source).baseline_or_audit()


def test_a_pull_adopts_the_copies_of_the_client(source: TinySource) -> None:
    from resourcesync import Mirror, MirrorState

    ours(source).baseline_or_audit()
    fetched = len(source.asked)

    report = Mirror(f"{source.url}/resourcelist.xml", "copy").pull()

    assert report.state is MirrorState.IN_SYNC
    assert {asked.target for asked in source.asked[fetched:]}.isdisjoint(FILES)


def test_two_runs_at_once_exclude_each_other(source: TinySource) -> None:
    made = ours(source)
    inside, go_on = threading.Event(), threading.Event()

    class Slow(Client):
        def log_event(self, change: Resource) -> None:
            inside.set()
            assert go_on.wait(30)

    slow = Slow()
    slow.set_mappings([f"{source.url}/", "copy"])
    worker = threading.Thread(target=slow.baseline_or_audit)
    worker.start()
    try:
        assert inside.wait(30)
        with pytest.raises(ClientFatalError, match="another run holds"):
            made.update_resource(Resource(f"{source.url}/b.txt"), "copy/b.txt")
    finally:
        go_on.set()
        worker.join()

    assert copies() == FILES


def test_a_token_is_sent_to_the_host_of_the_list_alone(
    source: TinySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CONFIG, "bearer_token", None)
    set_url_or_file_open_config("bearer_token", "secret")

    with url_or_file_open(f"{source.url}/resourcelist.xml") as opened:
        assert b"urlset" in opened.read()
        assert int(opened.info()["Content-Length"]) == len(source.answers["/resourcelist.xml"].body)
    with TinySource() as other:
        publish(other, FILES)
        entry = source.entry("/b.txt", b"b\n", uri=f"{other.url}/b.txt")
        source.put_document("/resourcelist.xml", '<rs:md capability="resourcelist"/>', [entry])
        made = ours(source)
        made.noauth = True
        made.set_mappings([f"{source.url}=copy", f"{other.url}=other"])
        made.sitemap_name = f"{source.url}/resourcelist.xml"
        made.network = made.network.__class__(allow_origins=(other.url,))
        made.baseline_or_audit()

    def tokens(asked: TinySource) -> set[str | None]:
        return {one.headers.get("Authorization") for one in asked.asked
                if one.target != "/robots.txt"}  # fmt: skip

    assert tokens(source) == {"Bearer secret"}
    assert tokens(other) == {None}


def test_a_document_that_cannot_be_had_is_an_error_of_both_trees(source: TinySource) -> None:
    for address in (f"{source.url}/none.xml", "none.xml", "file:///none.xml"):
        with pytest.raises(OSError, match="Failed to load") as caught:
            url_or_file_open(address)
        assert isinstance(caught.value, ResourceSyncError)
    with dead_address() as address, pytest.raises(SourceError):
        url_or_file_open(f"{address}/list.xml")


def test_the_error_of_a_single_resource_names_its_cause(source: TinySource) -> None:
    resource = Resource(f"{source.url}/b.txt", md5="0" * 32)

    with pytest.raises(ClientFatalError) as caught:
        ours(source).update_resource(resource, "copy/b.txt")

    assert isinstance(caught.value.__cause__, DigestMismatchError)
    assert caught.value.evidence


def test_a_local_source_is_copied_and_names_no_file_for_a_remote_list(
    source: TinySource, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "x.txt").write_text("x")
    made = Client()
    made.set_mappings([str(tmp_path / "there"), str(tmp_path / "here")])
    made.build_resource_list().write(str(tmp_path / "there" / "resourcelist.xml"))
    listed = made.find_resource_list()
    secret = source.entry("/b.txt", b"b\n", uri=f"file://{tmp_path}/there/x.txt")
    source.put_document("/resourcelist.xml", '<rs:md capability="resourcelist"/>', [secret])

    with pytest.raises((ClientFatalError, MapperError)):
        ours(source).baseline_or_audit()

    assert len(listed) == 0  # the folder of the copies is empty
    assert not (tmp_path / "copy" / "x.txt").exists()


def test_a_damaged_state_file_is_named(source: TinySource) -> None:
    Path(".resync-client-status.cfg").write_text("no section\n")

    with pytest.raises(ClientFatalError, match="cannot be read"):
        ours(source).incremental()
