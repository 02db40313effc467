"""Exit 0 means in sync, whatever state a mirror is in and whichever command is asked."""

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said
from tests.support.commands.run import files_of
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import TinySource

MIRROR = Path("copies/museum")
LATEST = "2026-01-03T00:00:00Z"
MANY = {f"/{number:03}.txt": b"%d" % number for number in range(40)}
LARGE = {f"/{number:02}.bin": bytes([number]) * 50_000 for number in range(12)}
PULL = ["pull", "museum", "-o", "retries=0"]


def in_sync(source: TinySource) -> None:
    assert run(PULL) == 0


def a_resource_waits(source: TinySource) -> None:
    in_sync(source)
    source.offer({**FILES, "/new.txt": b"new"}, at=LATER)
    del source.answers["/new.txt"]
    assert run(PULL) == 3


def bytes_contradict_the_list(source: TinySource) -> None:
    source.put("/objects/0003.txt", b"other")
    assert run([*PULL, "-o", "verify=lenient"]) == 3


def an_entry_cannot_be_used(source: TinySource) -> None:
    entries = [source.entry(target, body) for target, body in FILES.items()]
    foreign = source.entry("/x", b"x", uri="http://elsewhere.example/x")
    source.offer_entries([*entries, foreign])
    assert run(PULL) == 3


def deletions_are_held(source: TinySource) -> None:
    source.offer(MANY)
    in_sync(source)
    source.offer({"/000.txt": b"0"}, at=LATER)
    for at in (LATER, LATEST):  # one list that lacks them is no word yet
        source.offer({"/000.txt": b"0"}, at=at)
        run(PULL)


def the_first_pull_was_stopped(source: TinySource) -> None:
    source.offer(LARGE)
    assert run([*PULL, "-o", "max_bytes=200k"]) == 10


def only_listed(source: TinySource) -> None:
    assert run([*PULL, "--lists-only"]) == 3


def the_first_pull_failed(source: TinySource) -> None:
    kept = dict(source.answers)
    source.answers.clear()
    assert run(PULL) == 5
    source.answers.update(kept)


def an_audit_found_a_copy_lost(source: TinySource) -> None:
    in_sync(source)
    (MIRROR / "objects/0003.txt").unlink()
    assert run(["audit", "museum", "--offline"]) == 1


def an_audit_found_a_copy_altered(source: TinySource) -> None:
    in_sync(source)
    (MIRROR / "objects/0005.txt").write_bytes(b"objecT 5\n")
    assert run(["audit", "museum"]) == 1


def a_copy_was_lost_and_nobody_looked(source: TinySource) -> None:
    in_sync(source)
    (MIRROR / "objects/0003.txt").unlink()


def other_filters_and_then_the_source_was_away(source: TinySource) -> None:
    put(museum(source, 'include = ["**/000*.txt"]'))
    in_sync(source)
    put(museum(source))
    kept = source.answers.pop("/resourcelist.xml")
    assert run(PULL) == 5
    source.answers["/resourcelist.xml"] = kept


def the_source_has_more_now(source: TinySource) -> None:
    in_sync(source)
    source.offer({**FILES, "/new.txt": b"new"}, at=LATER)


def the_source_has_less_now(source: TinySource) -> None:
    in_sync(source)
    source.offer(dict(list(FILES.items())[1:]), at=LATER)


def an_audit_that_is_old(source: TinySource) -> None:
    an_audit_found_a_copy_lost(source)
    source.offer({**FILES, "/new.txt": b"new"}, at=LATER)


STATES: list[Callable[[TinySource], None]] = [
    in_sync,
    a_resource_waits,
    bytes_contradict_the_list,
    an_entry_cannot_be_used,
    deletions_are_held,
    the_first_pull_was_stopped,
    only_listed,
    the_first_pull_failed,
    an_audit_found_a_copy_lost,
    an_audit_found_a_copy_altered,
    a_copy_was_lost_and_nobody_looked,
    other_filters_and_then_the_source_was_away,
    the_source_has_more_now,
    the_source_has_less_now,
    an_audit_that_is_old,
]
NOT_MENDING = [
    "status museum --check",
    "audit museum --offline",
    "audit museum --offline --method lists",
    "audit museum --offline --sample 30%",
    "audit museum",
    "audit museum --method lists",
]
MENDING = [
    "pull museum -o retries=0",
    "pull --all -o retries=0",
    "repair museum",
    "repair museum --from-audit last",
]
TRUSTING = {"status museum --check", "audit museum --offline --method lists"}
"""These look at no file and ask nobody: they know what the last run knew, and say so."""
LOOKING_AT_LESS = TRUSTING | {
    "audit museum --offline --sample 30%",
    "audit museum --method lists",
    "pull museum -o retries=0",
    "pull --all -o retries=0",
}


def link_tree(source: Path, target: Path) -> None:
    """Copy a mirror so that its files stay the same files: it would take others for altered."""
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        elif ".resourcesync" in path.parts:
            shutil.copy2(path, place)
        else:
            place.hardlink_to(path)


def listed(source: TinySource) -> dict[str, str]:
    """Return the digests of what a whole mirror holds; what is served may contradict them."""
    text = source.answers["/resourcelist.xml"].body.decode()
    found = re.findall(rf'<loc>{source.url}/([^<]*)</loc>.*?hash="sha-256:([0-9a-f]*)"', text)
    return dict(found)


def is_whole(source: TinySource) -> bool:
    """Whether the mirror has all that is listed, as listed, nothing else, and all is usable."""
    there = {path: hashlib.sha256(body).hexdigest() for path, body in files_of(MIRROR).items()}
    usable = "elsewhere.example" not in source.answers["/resourcelist.xml"].body.decode()
    return usable and there == listed(source)


@pytest.mark.parametrize("state", STATES, ids=lambda item: item.__name__)
def test_exit_0_means_in_sync_in_every_state(
    state: Callable[[TinySource], None], source: TinySource, said: Said
) -> None:
    put(museum(source))
    state(source)
    kept, wrong = Path("kept"), {}
    link_tree(MIRROR, kept)
    said.readouterr()
    for command in (*NOT_MENDING, *MENDING):
        shutil.rmtree(MIRROR)
        link_tree(kept, MIRROR)

        code = run(command.split())

        out = said.readouterr().out
        if state is a_copy_was_lost_and_nobody_looked and command in LOOKING_AT_LESS:
            continue  # nobody knows it yet; docs/explanation says that these do not look
        is_offline = "--offline" in command or command in TRUSTING
        was_whole = state in (in_sync, the_source_has_more_now, the_source_has_less_now)
        whole = was_whole if is_offline else is_whole(source)
        claims = out.startswith("In sync  ") or "\nmuseum  in sync  " in out
        if (code == 0 or claims) != whole and (code == 0 or claims or command in NOT_MENDING):
            wrong[command] = (code, whole, out)
    assert wrong == {}
