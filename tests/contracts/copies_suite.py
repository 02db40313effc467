"""Checks of copies (``resourcesync.ports.Copies``)."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Final

import pytest

from resourcesync.adapters.mirror.installed_copies import FileTreeCopies
from resourcesync.errors import StateError, StorageError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import (
    Copies,
    CopyContent,
    CopyInstallation,
    CopyMove,
    CopyRemoval,
    StagedCopy,
)
from tests.contracts.readers import digests_of, read_and_close

_HOSTILE: Final = (
    "../outside.txt",
    "a/../../outside.txt",
    "..",
    "/outside.txt",
    "a//b.txt",
    "a/./b.txt",
    "a/",
    "",
    "a\0b.txt",
    ".resourcesync/state.db",
    ".resourcesync",
    "a/.resourcesync/state.db",
    "a/.resourcesync",
    ".ReSourceSync/x",
    "a/.resource\u00adsync./x",
)


@contextmanager
def copies_in(
    mirror: Path, monotonic: Callable[[], float] = lambda: 0.0
) -> Iterator[FileTreeCopies]:
    """Open the copies of a new mirror's folder; at its end nothing is left on its way there."""
    own = mirror / ".resourcesync"
    for name in ("tmp", "trash", "quarantine"):
        (own / name).mkdir(parents=True)
    above, below = (os.open(path, os.O_RDONLY) for path in (mirror, own))
    copies = FileTreeCopies(above, below, monotonic)
    yield copies
    copies.close()
    assert not list((own / "tmp").iterdir())
    os.close(below)
    os.close(above)


class CopiesSuite(ABC):
    """The promises of what holds the copies, one check each.

    Derive a class whose name begins with ``Test`` in a module of tests; give it a pytest fixture
    ``copies`` that returns copies of an empty mirror, and the methods below.
    """

    has_folders: ClassVar[bool] = True
    """True if nothing can be below a copy, as in a folder nothing is below a file."""

    many: ClassVar[int] = 150
    """Number of copies that exceeds one batch."""

    @abstractmethod
    def tamper(self, path: str, content: bytes) -> None:
        """Put bytes at a path as somebody else does, behind the mirror's back."""

    @abstractmethod
    def read_trashed(self, place: str) -> bytes:
        """Return the bytes of what is in the trash under a name."""

    @abstractmethod
    def read_quarantined(self, place: str) -> bytes:
        """Return the bytes of what is in the quarantine under a name."""

    def test_bytes_are_hashed_while_they_pass_and_forgotten_at_a_restart(
        self, copies: Copies
    ) -> None:
        staged = copies.stage(["md5", "sha-256"])
        assert staged.part is None
        staged.write(b"half of the wrong ones")
        staged.restart()
        for chunk in (b"one", b"", b" two"):
            staged.write(chunk)
        sealed = staged.seal()

        assert sealed[0] == 7
        assert set(sealed[1]) == set(digests_of(b"one two"))
        stream = staged.open_sealed()
        stream.seek(4)
        assert read_and_close(stream) == b"two"
        assert _install(copies, staged, "a.txt") == copies.signature("a.txt")
        _expect_contents(copies, {"a.txt": b"one two"})

    def test_discarded_bytes_leave_nothing(self, copies: Copies) -> None:
        for is_left in (True, False):
            staged = _stage(copies, b"bytes" * 20_000)  # more than a store may hold in memory
            assert list(copies.paths()) == []
            if is_left:
                staged.suspend()
            staged.discard()
            staged.discard()

        assert list(copies.paths()) == []

    def test_a_copy_is_copied_as_it_is(self, copies: Copies) -> None:
        _put(copies, "a.txt", b"one")
        staged = copies.stage_copy("a.txt", ["sha-256"])
        assert staged is not None
        assert staged.seal() == (3, digests_of(b"one")[:1])
        _install(copies, staged, "b.txt")

        _expect_contents(copies, {"a.txt": b"one", "b.txt": b"one"})
        assert copies.stage_copy("c.txt", ["sha-256"]) is None

    def test_an_installed_copy_exists_with_its_signature(self, copies: Copies) -> None:
        signatures = {}
        for path, body, year in (("a.txt", b"a", 2020), ("b/c.txt", b"", 1), ("é/ ü", b"x", 9999)):
            staged, moment = _stage(copies, body), datetime(year, 1, 1, tzinfo=UTC)
            (found,) = copies.install(
                [CopyInstallation(staged=staged, path=path, lastmod=to_microseconds(moment))]
            )
            assert isinstance(found, str)
            assert found
            signatures[path] = found

        assert sorted(copies.paths()) == sorted(signatures)
        with copies.inspect() as look:
            for path, signature in signatures.items():
                assert look.signature(path) == signature
            assert look.digest("b/c.txt", ["md5"]) == (0, digests_of(b"")[1:])
            assert look.signature("a.txt.old") is None
            assert look.digest("a.txt.old", ["md5"]) is None
            wanted = [("b/c.txt", ["md5", "sha-256"]), ("a.txt.old", ["md5"]), ("a.txt", ["md5"])]
            sha_256, md5 = map(str, digests_of(b""))
            contents = [(0, f"{md5} {sha_256}"), None, (1, str(digests_of(b"a")[1]))]
            assert [
                each[:2] if isinstance(each, CopyContent) else each
                for each in look.digest_all(wanted)
            ] == contents

    def test_our_own_copy_or_an_equal_one_is_replaced_without_a_trace(self, copies: Copies) -> None:
        first = _put(copies, "a.txt", b"old")
        second = _put(copies, "a.txt", b"new", replaces=first)
        self.tamper("b.txt", b"same")

        _put(copies, "b.txt", b"same")

        assert first != second
        _expect_contents(copies, {"a.txt": b"new", "b.txt": b"same"})
        _expect_no_trace(copies, "a.txt")
        _expect_no_trace(copies, "b.txt")

    def test_foreign_files_are_moved_to_the_quarantine(self, copies: Copies) -> None:
        first = _put(copies, "a.txt", b"ours")
        self.tamper("a.txt", b"edited by hand")
        self.tamper("b.txt", b"somebody's own")

        _put(copies, "a.txt", b"new", replaces=first)
        _put(copies, "b.txt", b"new")

        made_way = copies.newly_quarantined()
        assert [path for path, _ in made_way] == ["a.txt", "b.txt"]
        assert copies.newly_quarantined() == []
        for path, place in made_way:
            assert list(copies.quarantined(path)) == [place]
            _expect_contents(copies, {path: b"new"})
        self.tamper("b.txt", b"the second one")
        _put(copies, "b.txt", b"new")
        kept = [
            [self.read_quarantined(place) for place in copies.quarantined(path)]
            for path in ("a.txt", "b.txt")
        ]
        assert kept == [[b"edited by hand"], [b"somebody's own", b"the second one"]]
        assert sorted(copies.paths()) == ["a.txt", "b.txt"]

    def test_a_copy_with_our_bytes_is_ours_whatever_its_signature_is(self, copies: Copies) -> None:
        for path in ("a.txt", "b.txt"):
            _put(copies, path, b"ours")
        content = CopyContent(4, str(digests_of(b"ours")[0]))

        new = CopyInstallation(staged=_stage(copies, b"new"), path="a.txt", replaces="of before")
        new.content = content
        copies.install([new])
        removal = CopyRemoval(path="b.txt", signature="of before", content=content)
        (place,) = copies.remove([removal], "deleted")

        _expect_contents(copies, {"a.txt": b"new"})
        _expect_no_trace(copies, "a.txt")
        assert list(copies.trashed()) == [place]

    def test_one_failed_installation_or_move_does_not_stop_the_batch(self, copies: Copies) -> None:
        paths = [f"d{number}/e/f.txt" for number in range(self.many)]
        named = [*paths[:1], "../outside.txt", *paths[1:]]

        found = copies.install(
            [CopyInstallation(staged=_stage(copies, path.encode()), path=path) for path in named]
        )

        wrong = [number for number, each in enumerate(found) if isinstance(each, StorageError)]
        assert (len(found), wrong) == (len(named), [1])
        assert sorted(copies.paths()) == sorted(paths)
        signatures = map(str, [found[0], *found[2:]])
        moves = [
            CopyMove(path=path, to=f"{path}!", signature=signature)
            for path, signature in zip(paths, signatures, strict=True)
        ]
        moves[1] = CopyMove(path=paths[1], to="../outside.txt", signature=moves[1].signature)

        moved = copies.move(moves)

        wrong = [number for number, each in enumerate(moved) if isinstance(each, StorageError)]
        assert (len(moved), wrong) == (len(moves), [1])
        there = {path if path == paths[1] else f"{path}!" for path in paths}
        assert set(copies.paths()) == there

    def test_a_path_outside_the_mirror_is_refused(self, copies: Copies) -> None:
        signature = _put(copies, "a.txt", b"ours")
        for path in _HOSTILE:
            (found,) = copies.install([CopyInstallation(staged=_stage(copies, b"bad"), path=path)])
            assert isinstance(found, StorageError), f"nothing is put at {path!r}"
            assert copies.signature(path) is None, f"nothing is found at {path!r}"
            assert copies.digest(path, ["md5"]) is None, f"nothing is read at {path!r}"
            assert copies.stage_copy(path, ["md5"]) is None, f"nothing is copied from {path!r}"
            (gone,) = copies.remove([CopyRemoval(path=path, signature="1")], "deleted")
            assert gone == "" or isinstance(gone, StorageError), f"nothing leaves {path!r}"
            (found,) = copies.move([CopyMove(path="a.txt", to=path, signature=signature)])
            assert isinstance(found, StorageError), f"nothing is moved to {path!r}"
            (found,) = copies.move([CopyMove(path=path, to="b.txt", signature="1")])
            assert found == "1" or isinstance(found, StorageError), f"nothing from {path!r}"
        _expect_contents(copies, {"a.txt": b"ours"})
        assert list(copies.paths()) == ["a.txt"]

    def test_nothing_is_put_below_a_copy_or_moved_onto_a_folder(self, copies: Copies) -> None:
        if not self.has_folders:
            pytest.skip("the copies are in no folders")
        signature = _put(copies, "a", b"a copy")
        _put(copies, "b/c", b"another")
        found = [
            copies.install([CopyInstallation(staged=_stage(copies, b"x"), path=path)])[0]
            for path in ("a/b", "b")
        ]
        found += [
            copies.move([CopyMove(path="a", to=path, signature=signature)])[0]
            for path in ("b", "b/c/d")
        ]
        assert [isinstance(each, StorageError) and each.code for each in found] == [
            "path-in-the-way"
        ] * 4

        _expect_contents(copies, {"a": b"a copy", "b/c": b"another"})

    def test_a_removed_copy_is_in_the_trash_and_can_be_staged(self, copies: Copies) -> None:
        _put(copies, "a/c.txt", b"stays")
        signature = _put(copies, "a/b.txt", b"goes")

        (place,) = copies.remove([CopyRemoval(path="a/b.txt", signature=signature)], "deleted")

        assert isinstance(place, str)
        assert place
        assert list(copies.trashed()) == [place]
        assert self.read_trashed(str(place)) == b"goes"
        assert copies.signature("a/b.txt") is None
        assert list(copies.paths()) == ["a/c.txt"]
        again = copies.remove([CopyRemoval(path="a/b.txt", signature=signature)], "deleted")
        assert again == [""]
        staged = copies.stage_trashed(place, ["sha-256", "md5"])

        assert staged is not None
        assert staged.seal() == (4, digests_of(b"goes"))
        _install(copies, staged, "a/b.txt")
        _expect_contents(copies, {"a/c.txt": b"stays", "a/b.txt": b"goes"})
        assert list(copies.trashed()) == [place]
        assert copies.stage_trashed("nothing", ["md5"]) is None
        with pytest.raises(StateError):
            copies.stage_trashed("../a/b.txt", ["md5"])

    def test_a_locally_modified_copy_is_detected_and_not_removed(self, copies: Copies) -> None:
        content = CopyContent(4, str(digests_of(b"ours")[0]))
        removals = [
            CopyRemoval(path=path, signature=_put(copies, path, b"ours"), content=content)
            for path in ("a.txt", "b.txt")
        ]
        self.tamper("a.txt", b"edit")
        self.tamper("c.txt", b"theirs")
        assert copies.signature("a.txt") not in {None, "", removals[0].signature}
        assert sorted(copies.paths()) == ["a.txt", "b.txt", "c.txt"]

        found = copies.remove(removals, "deleted")

        code = found[0].code if isinstance(found[0], StorageError) else found[0]
        assert code == "local-change"
        _expect_contents(copies, {"a.txt": b"edit", "c.txt": b"theirs"})
        assert list(copies.trashed()) == [found[1]]

    def test_a_removed_altered_file_goes_to_the_quarantine(self, copies: Copies) -> None:
        signature = _put(copies, "a.txt", b"ours")
        self.tamper("a.txt", b"somebody's own")

        removal = CopyRemoval(path="a.txt", signature=signature, is_altered=True)
        assert copies.remove([removal], "deleted") == [""]

        ((path, place),) = copies.newly_quarantined()
        assert (path, self.read_quarantined(place)) == ("a.txt", b"somebody's own")
        assert list(copies.trashed()) == []
        assert copies.signature("a.txt") is None

    def test_a_copy_moves_with_its_bytes(self, copies: Copies) -> None:
        before = _put(copies, "a.txt", b"moves")
        _put(copies, "c.txt", b"stays")

        for _ in range(2):
            signature = _move(copies, "a.txt", "b/c.txt", before)
            assert signature == copies.signature("b/c.txt")
            _expect_contents(copies, {"b/c.txt": b"moves", "c.txt": b"stays"})
            assert sorted(copies.paths()) == ["b/c.txt", "c.txt"]
        _expect_no_trace(copies, "a.txt")
        _expect_no_trace(copies, "b/c.txt")

    def test_moving_a_missing_copy_does_nothing(self, copies: Copies) -> None:
        assert _move(copies, "a.txt", "b.txt", "1") == "1"
        _put(copies, "c.txt", b"another")
        assert _move(copies, "a/b.txt", "c.txt", "1") == "1"

        _expect_contents(copies, {"c.txt": b"another"})
        assert list(copies.paths()) == ["c.txt"]
        _expect_no_trace(copies, "c.txt")

    def test_a_copy_that_moved_may_have_left_its_name_to_a_folder(self, copies: Copies) -> None:
        signature = _put(copies, "a", b"one")
        _move(copies, "a", "b", signature)
        _put(copies, "a/c", b"two")

        again = _move(copies, "a", "b", signature)

        assert again == copies.signature("b")
        _expect_contents(copies, {"b": b"one", "a/c": b"two"})
        _expect_no_trace(copies, "b")

    def test_a_file_at_the_new_path_goes_to_the_quarantine(self, copies: Copies) -> None:
        signature = _put(copies, "a.txt", b"ours")
        self.tamper("b.txt", b"somebody's own")

        _move(copies, "a.txt", "b.txt", signature)

        made_way = copies.newly_quarantined()
        assert [path for path, _ in made_way] == ["b.txt"]
        kept = [self.read_quarantined(place) for place in copies.quarantined("b.txt")]
        assert kept == [b"somebody's own"]
        _expect_contents(copies, {"b.txt": b"ours"})
        assert list(copies.paths()) == ["b.txt"]

    def test_an_edited_copy_moves_with_its_edits(self, copies: Copies) -> None:
        signature = _put(copies, "a.txt", b"ours")
        self.tamper("a.txt", b"edited by hand")

        for _ in range(2):
            found = _move(copies, "a.txt", "b.txt", signature)
            assert found != copies.signature("b.txt")
        _expect_contents(copies, {"b.txt": b"edited by hand"})
        assert list(copies.paths()) == ["b.txt"]

    def test_folders_emptied_by_moving_are_removed(self, copies: Copies) -> None:
        if not self.has_folders:
            pytest.skip("the copies are in no folders")
        first = _put(copies, "a/b/c.txt", b"one")
        second = _put(copies, "d/e/f.txt", b"two")
        _put(copies, "d/g.txt", b"three")

        _move(copies, "a/b/c.txt", "c.txt", first)
        _move(copies, "d/e/f.txt", "d/f.txt", second)
        _put(copies, "a", b"four")
        _put(copies, "d/e", b"five")

        held = {"c.txt": b"one", "d/f.txt": b"two", "d/g.txt": b"three", "a": b"four"}
        _expect_contents(copies, {**held, "d/e": b"five"})


def _stage(copies: Copies, body: bytes) -> StagedCopy:
    staged = copies.stage(["sha-256"])
    staged.write(body)
    staged.seal()
    return staged


def _install(
    copies: Copies, staged: StagedCopy, path: str, replaces: str | None = None
) -> str | StorageError:
    (found,) = copies.install([CopyInstallation(staged=staged, path=path, replaces=replaces)])
    return found


def _put(copies: Copies, path: str, body: bytes, replaces: str | None = None) -> str:
    found = _install(copies, _stage(copies, body), path, replaces)
    assert isinstance(found, str), f"a copy is put at {path}: {found}"
    assert found
    return found


def _move(copies: Copies, path: str, to: str, signature: str) -> str:
    (found,) = copies.move([CopyMove(path=path, to=to, signature=signature)])
    assert isinstance(found, str), f"{path} moves to {to}: {found}"
    return str(found)


def _expect_contents(copies: Copies, held: Mapping[str, bytes]) -> None:
    for path, body in held.items():
        found = copies.digest(path, ["sha-256", "md5"])
        assert found is not None, f"there is a copy at {path}"
        assert found == (len(body), digests_of(body)), f"the copy at {path} has its bytes"


def _expect_no_trace(copies: Copies, path: str) -> None:
    assert (copies.newly_quarantined(), list(copies.quarantined(path))) == ([], [])
