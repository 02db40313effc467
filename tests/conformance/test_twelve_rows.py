"""What the reference client does wrong, one row each, and what our command does instead.

The rows are those of the study of `resync-sync` 2.0.1: an address alone, audit's exit code, an
unreachable Source, a wrong hash, one missing resource, a list that is no list, dry runs, paths
that climb out, names that clash, an address to look at, where state lives, a long list.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands.run import Ran, files_of, resourcesync
from tests.support.servers.tiny_source import TinySource, dead_address

TWELVE = {f"/objects/{number:04d}.txt": b"object %d\n" % number for number in range(12)}


@pytest.fixture
def source() -> Iterator[TinySource]:
    with TinySource() as running:
        yield running


def _mirrored(files: dict[str, bytes]) -> dict[str, bytes]:
    return {target.removeprefix("/"): body for target, body in files.items()}


def _is_a_message(ran: Ran) -> bool:
    """Whether what was printed is meant for people: no traceback, no endless sentence."""
    lines = ran.said.splitlines()
    return 0 < len(lines) <= 12 and "Traceback" not in ran.said and max(map(len, lines)) <= 200


# 1 -------------------------------------------------------------------------------------------


@pytest.mark.founding("0.9 §2.2.2", "Baseline from a Resource List", "`pull`")
def test_an_address_alone_is_enough_to_mirror_a_source(source: TinySource, tmp_path: Path) -> None:
    source.offer(TWELVE)

    ran = resourcesync("pull", source.url + "/", cwd=tmp_path)

    (mirror,) = (path for path in tmp_path.iterdir() if (path / ".resourcesync").is_dir())
    assert mirror.name.startswith("127.0.0.1")
    assert files_of(mirror) == _mirrored(TWELVE)
    assert ran.code == 0
    assert "In sync" in ran.said


# 2 -------------------------------------------------------------------------------------------


def test_an_audit_that_finds_differences_exits_1_and_names_them(
    source: TinySource, tmp_path: Path
) -> None:
    source.offer(TWELVE)
    mirror = tmp_path / "mirror"
    assert resourcesync("pull", source.url, mirror, cwd=tmp_path).code == 0
    (mirror / "objects/0003.txt").unlink()
    (mirror / "objects/0005.txt").write_bytes(b"objecT 5\n")

    ran = resourcesync("audit", mirror, cwd=tmp_path)

    assert ran.code == 1
    assert "Not in sync" in ran.said
    marked = [line.split()[:2] for line in ran.said.splitlines() if line[:2] in {"+ ", "* "}]
    assert marked == [["+", "/objects/0003.txt"], ["*", "/objects/0005.txt"]]


def test_an_audit_that_finds_nothing_exits_0_and_changes_nothing(
    source: TinySource, tmp_path: Path
) -> None:
    source.offer(TWELVE)
    mirror = tmp_path / "mirror"
    assert resourcesync("pull", source.url, mirror, cwd=tmp_path).code == 0

    ran = resourcesync("audit", mirror, cwd=tmp_path)

    assert ran.code == 0
    assert "In sync" in ran.said
    assert files_of(mirror) == _mirrored(TWELVE)


# 3 -------------------------------------------------------------------------------------------


def test_a_source_that_refuses_connections_is_unreachable(tmp_path: Path) -> None:
    with dead_address() as url:
        ran = resourcesync("pull", url, tmp_path / "mirror", cwd=tmp_path)

    assert ran.code == 4
    assert url in ran.said
    assert _is_a_message(ran)


def test_a_server_without_any_list_is_unusable_and_what_was_tried_is_said(
    source: TinySource, tmp_path: Path
) -> None:
    ran = resourcesync("pull", source.url, tmp_path / "mirror", cwd=tmp_path)

    assert ran.code == 5
    assert "/.well-known/resourcesync" in ran.said
    assert "404" in ran.said
    assert _is_a_message(ran)


# 4 -------------------------------------------------------------------------------------------


def test_a_body_that_is_not_the_listed_one_is_refused_and_the_old_copy_kept(
    source: TinySource, tmp_path: Path
) -> None:
    source.offer(TWELVE)
    mirror = tmp_path / "mirror"
    assert resourcesync("pull", source.url, mirror, cwd=tmp_path).code == 0
    changed = {**TWELVE, "/objects/0004.txt": b"new four\n"}
    source.offer(changed, at="2026-01-02T00:00:00Z")
    source.put("/objects/0004.txt", b"bad four\n")

    ran = resourcesync("pull", mirror, cwd=tmp_path)

    assert ran.code == 3
    assert files_of(mirror) == _mirrored(TWELVE)
    assert "/objects/0004.txt" in ran.said
    assert "Not in sync" in ran.said


def test_a_first_copy_that_is_not_the_listed_one_is_not_stored(
    source: TinySource, tmp_path: Path
) -> None:
    source.offer(TWELVE)
    source.put("/objects/0004.txt", b"evil four")
    mirror = tmp_path / "mirror"

    ran = resourcesync("pull", source.url, mirror, cwd=tmp_path)

    expected = {k: v for k, v in TWELVE.items() if k != "/objects/0004.txt"}
    assert ran.code == 3
    assert files_of(mirror) == _mirrored(expected)


# 5 -------------------------------------------------------------------------------------------


def test_one_missing_resource_does_not_stop_the_eleven_others(
    source: TinySource, tmp_path: Path
) -> None:
    source.offer(TWELVE)
    del source.answers["/objects/0002.txt"]
    mirror = tmp_path / "mirror"

    ran = resourcesync("pull", source.url, mirror, cwd=tmp_path)

    expected = {k: v for k, v in TWELVE.items() if k != "/objects/0002.txt"}
    assert ran.code == 3
    assert files_of(mirror) == _mirrored(expected)
    assert "1 failed" in ran.said
    assert "/objects/0002.txt" in ran.said


# 6 -------------------------------------------------------------------------------------------


def test_a_list_that_is_html_is_told_in_one_message_with_its_place(
    source: TinySource, tmp_path: Path
) -> None:
    source.put("/list.xml", b"<!DOCTYPE html>\n<html><body>Sorry<br></body></html>\n", "text/html")

    ran = resourcesync("pull", source.url + "/list.xml", tmp_path / "mirror", cwd=tmp_path)

    assert ran.code == 5
    assert "line 1" in ran.said
    assert _is_a_message(ran)


def test_a_list_that_is_cut_short_is_told_in_one_message_with_its_place(
    source: TinySource, tmp_path: Path
) -> None:
    source.offer(TWELVE)
    whole = source.answers["/resourcelist.xml"].body
    source.put("/resourcelist.xml", whole[: len(whole) // 2], "application/xml")
    mirror = tmp_path / "mirror"

    ran = resourcesync("pull", source.url, mirror, cwd=tmp_path)

    assert ran.code == 5  # it came whole, so the Source has no more of it
    assert "line" in ran.said
    assert "column" in ran.said
    assert _is_a_message(ran)
    assert not mirror.exists() or files_of(mirror) == {}


# 7 -------------------------------------------------------------------------------------------


def test_a_dry_run_says_what_it_would_do_and_does_nothing(
    source: TinySource, tmp_path: Path
) -> None:
    source.offer(TWELVE)
    mirror = tmp_path / "mirror"
    assert resourcesync("pull", source.url, mirror, cwd=tmp_path).code == 0
    source.offer(
        {**TWELVE, "/objects/0004.txt": b"newer four\n", "/objects/0099.txt": b"ninety-nine\n"},
        at="2026-01-02T00:00:00Z",
    )
    source.asked.clear()

    ran = resourcesync("pull", mirror, "--dry-run", cwd=tmp_path)

    assert ran.code == 0
    assert "would create 1" in ran.said
    assert "update 1" in ran.said
    assert files_of(mirror) == _mirrored(TWELVE)
    assert not any(asked.target.startswith("/objects/") for asked in source.asked)


def test_a_pull_after_a_dry_run_loses_nothing(source: TinySource, tmp_path: Path) -> None:
    source.offer(TWELVE)
    mirror = tmp_path / "mirror"

    resourcesync("pull", source.url, mirror, "--dry-run", cwd=tmp_path)
    ran = resourcesync("pull", source.url, mirror, cwd=tmp_path)

    assert ran.code == 0
    assert files_of(mirror) == _mirrored(TWELVE)


# 8 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/../../x/evil.txt", "/a/%2e%2e/%2e%2e/%2e%2e/x/evil.txt", "/a/..%2f..%2fx/evil.txt"]
)
def test_an_entry_that_climbs_out_of_the_mirror_is_refused(
    source: TinySource, tmp_path: Path, path: str
) -> None:
    evil = b"evil\n"
    source.offer(TWELVE)
    entries = [source.entry(target, body) for target, body in TWELVE.items()]
    source.offer_entries([*entries, source.entry("", evil, uri=source.url + path)])
    for target in (path, "/x/evil.txt", "/a/x/evil.txt"):
        source.put(target, evil)
    mirror = tmp_path / "deep/er/mirror"
    mirror.parent.mkdir(parents=True)

    ran = resourcesync("pull", source.url, mirror, cwd=tmp_path)

    outside = [p for p in tmp_path.rglob("evil*") if not p.is_relative_to(mirror)]
    assert outside == []
    assert {k: v for k, v in files_of(mirror).items() if v != evil} == _mirrored(TWELVE)
    assert all(p.is_relative_to(mirror) for p in tmp_path.rglob("*.txt"))
    assert ran.code in {0, 3}
    if ran.code == 0:  # an encoded name may also be kept safely; then it has to be here
        assert evil in files_of(mirror).values()


def test_a_plain_climbing_entry_is_counted_as_refused(source: TinySource, tmp_path: Path) -> None:
    source.offer(TWELVE)
    entries = [source.entry(target, body) for target, body in TWELVE.items()]
    climbing = source.entry("", b"evil\n", uri=source.url + "/../../x/evil.txt")
    source.offer_entries([*entries, climbing])

    ran = resourcesync("pull", source.url, tmp_path / "mirror", "--json", cwd=tmp_path)

    assert ran.code == 3
    assert ran.end["listed"]["refused"] == 1


# 9 -------------------------------------------------------------------------------------------


def test_names_that_clash_on_a_disk_are_all_kept(source: TinySource, tmp_path: Path) -> None:
    clashing = {
        "/a": b"a itself\n",
        "/a/b": b"below a\n",
        "/dir/": b"a folder's page\n",
        "/Case.txt": b"upper\n",
        "/case.txt": b"lower\n",
    }
    source.offer(clashing)
    mirror = tmp_path / "mirror"

    ran = resourcesync("pull", source.url, mirror, cwd=tmp_path)

    assert ran.code == 0
    assert sorted(files_of(mirror).values()) == sorted(clashing.values())
    assert resourcesync("audit", mirror, cwd=tmp_path).code == 0


# 10 ------------------------------------------------------------------------------------------


def test_an_address_can_be_looked_at_without_copying(source: TinySource, tmp_path: Path) -> None:
    source.offer(TWELVE)

    ran = resourcesync("pull", source.url, tmp_path / "mirror", "--dry-run", cwd=tmp_path)

    assert ran.code == 0
    assert f"{source.url}/.well-known/resourcesync" in ran.said
    assert "12 resources" in ran.said or "would create 12" in ran.said
    assert not any(asked.target.startswith("/objects/") for asked in source.asked)


# 11 ------------------------------------------------------------------------------------------


def test_state_lives_with_the_mirror_and_moves_with_it(source: TinySource, tmp_path: Path) -> None:
    source.offer(TWELVE)
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    mirror = tmp_path / "mirror"

    first = resourcesync("pull", source.url, mirror, cwd=here)
    again = resourcesync("pull", mirror, cwd=there)

    assert (first.code, again.code) == (0, 0)
    assert "nothing changed" in again.said
    assert (mirror / ".resourcesync/state.db").is_file()
    assert [*here.iterdir(), *there.iterdir()] == []


# 12 ------------------------------------------------------------------------------------------


@pytest.mark.founding("0.9 §3", "A list has up to 50,000 entries", "`pull`")
def test_a_list_of_50_000_entries_is_read_whole(source: TinySource, tmp_path: Path) -> None:
    entries = [source.entry(f"/objects/{n:05d}.txt", b"%d" % n) for n in range(50_000)]
    source.offer_entries(entries)

    ran = resourcesync("pull", source.url, tmp_path / "mirror", "-n", "--json", cwd=tmp_path)

    (plan,) = ran.events("plan")
    assert plan["create"] == 50_000
    assert ran.code == 0
