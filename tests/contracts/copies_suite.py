"""Checks of copies (``resourcesync.ports.Copies``)."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import ClassVar, Final

import pytest

from resourcesync.errors import StateError, StorageError
from resourcesync.model.digests import Digest
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Copies, CopyInstallation, CopyMove, CopyRemoval, StagedCopy
from resourcesync.ports.copies import CopyContent
from tests.contracts.expectations import expect, expect_equal, read_and_close

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

    def test_bytes_are_hashed_while_they_pass(self, copies: Copies) -> None:
        """`seal` returns the length and the requested digests of all chunks."""
        staged = copies.stage(["md5", "sha-256"])
        expect(staged.part is None, "a new staged copy has no part")
        for chunk in (b"one", b"", b" two"):
            staged.write(chunk)
        sealed = staged.seal()

        expect_equal(sealed[0], 7, "seal returns the length")
        expect_equal(set(sealed[1]), set(_digests(b"one two")), "seal returns the digests")
        stream = staged.open_sealed()
        stream.seek(4)
        expect_equal(read_and_close(stream), b"two", "sealed bytes can be read and sought")
        expect_equal(_install(copies, staged, "a.txt"), copies.signature("a.txt"), "and installed")
        _expect_contents(copies, {"a.txt": b"one two"})

    def test_a_copy_that_starts_again_forgets_its_bytes(self, copies: Copies) -> None:
        """After `restart` only the later bytes count."""
        staged = copies.stage(["sha-256"])
        staged.write(b"half of the wrong ones")
        staged.restart()
        staged.write(b"right")

        expect_equal(staged.seal(), (5, _digests(b"right")[:1]), "only the new bytes count")
        _install(copies, staged, "a.txt")
        _expect_contents(copies, {"a.txt": b"right"})

    def test_discarded_bytes_leave_nothing(self, copies: Copies) -> None:
        """Discarded or unfinished bytes leave nothing; no copy exists before it is installed."""
        for is_left in (True, False):
            staged = _stage(copies, b"bytes" * 20_000)  # more than a store may hold in memory
            expect_equal(list(copies.paths()), [], "no copy exists before it is installed")
            if is_left:
                staged.suspend()
            staged.discard()
            staged.discard()

        expect_equal(list(copies.paths()), [], "discarded bytes are in no copy")

    def test_a_copy_is_copied_as_it_is(self, copies: Copies) -> None:
        """`stage_copy` copies the bytes, and returns digests to verify them."""
        _put(copies, "a.txt", b"one")
        staged = copies.stage_copy("a.txt", ["sha-256"])
        expect(staged is not None, "a copy can be copied")
        if staged is not None:
            expect_equal(staged.seal(), (3, _digests(b"one")[:1]), "it has the same bytes")
            _install(copies, staged, "b.txt")

        _expect_contents(copies, {"a.txt": b"one", "b.txt": b"one"})
        expect(copies.stage_copy("c.txt", ["sha-256"]) is None, "a missing copy is not copied")

    def test_an_installed_copy_exists_with_its_signature(self, copies: Copies) -> None:
        """With the signature that was returned, an empty one too, and whatever time it has."""
        signatures = {}
        for path, body, year in (("a.txt", b"a", 2020), ("b/c.txt", b"", 1), ("é/ ü", b"x", 9999)):
            staged, moment = _stage(copies, body), datetime(year, 1, 1, tzinfo=UTC)
            (found,) = copies.install(
                [CopyInstallation(staged=staged, path=path, lastmod=to_microseconds(moment))]
            )
            expect(isinstance(found, str) and found, "install returns a signature")
            signatures[path] = found

        expect_equal(sorted(copies.paths()), sorted(signatures), "only the copies are listed")
        with copies.inspect() as look:
            for path, signature in signatures.items():
                expect_equal(look.signature(path), signature, "inspect has the same signature")
            expect_equal(look.digest("b/c.txt", ["md5"]), (0, _digests(b"")[1:]), "no bytes")
            expect_equal(look.signature("a.txt.old"), None, "a missing copy has no signature")
            expect_equal(look.digest("a.txt.old", ["md5"]), None, "a missing copy has no digest")
            wanted = [("b/c.txt", ["md5", "sha-256"]), ("a.txt.old", ["md5"]), ("a.txt", ["md5"])]
            sha_256, md5 = map(str, _digests(b""))
            contents = [(0, f"{md5} {sha_256}"), None, (1, str(_digests(b"a")[1]))]
            expect_equal(
                [
                    each[:2] if isinstance(each, CopyContent) else each
                    for each in look.digest_all(wanted)
                ],
                contents,
                "many are read in order",
            )

    def test_our_own_copy_is_replaced_without_a_trace(self, copies: Copies) -> None:
        """`replaces` names it; the new one has another signature."""
        first = _put(copies, "a.txt", b"old")
        second = _put(copies, "a.txt", b"new", replaces=first)

        expect(first != second, "other bytes have another signature")
        _expect_contents(copies, {"a.txt": b"new"})
        _expect_no_trace(copies, "a.txt")

    def test_foreign_files_are_moved_to_the_quarantine(self, copies: Copies) -> None:
        """Edited by somebody or never ours: it makes way, and none of its bytes are lost."""
        first = _put(copies, "a.txt", b"ours")
        self.tamper("a.txt", b"edited by hand")
        self.tamper("b.txt", b"somebody's own")

        _put(copies, "a.txt", b"new", replaces=first)
        _put(copies, "b.txt", b"new")

        made_way = copies.newly_quarantined()
        expect_equal([path for path, _ in made_way], ["a.txt", "b.txt"], "both are reported")
        expect_equal(copies.newly_quarantined(), [], "each is reported once")
        for path, place in made_way:
            expect_equal(list(copies.quarantined(path)), [place], "set_aside finds it by its path")
            _expect_contents(copies, {path: b"new"})
        kept = [self.read_quarantined(place) for _, place in made_way]
        expect_equal(kept, [b"edited by hand", b"somebody's own"], "its bytes are preserved")
        expect_equal(sorted(copies.paths()), ["a.txt", "b.txt"], "the quarantine is not listed")

    def test_a_copy_with_our_bytes_is_ours_whatever_its_signature_is(self, copies: Copies) -> None:
        """As in a mirror that was restored: it is replaced, or goes to the trash."""
        for path in ("a.txt", "b.txt"):
            _put(copies, path, b"ours")
        content = CopyContent(4, str(_digests(b"ours")[0]))

        new = CopyInstallation(staged=_stage(copies, b"new"), path="a.txt", replaces="of before")
        new.content = content
        copies.install([new])
        removal = CopyRemoval(path="b.txt", signature="of before", content=content)
        (place,) = copies.remove([removal], "deleted")

        _expect_contents(copies, {"a.txt": b"new"})
        _expect_no_trace(copies, "a.txt")
        expect_equal(list(copies.trashed()), [place], "the other one is in the trash")

    def test_repeated_quarantine_entries_are_listed_newest_last(self, copies: Copies) -> None:
        """One path may go to the quarantine more than once."""
        for body in (b"the first", b"the second one"):
            self.tamper("a.txt", body)
            _put(copies, "a.txt", b"new")

        kept = [self.read_quarantined(place) for place in copies.quarantined("a.txt")]
        expect_equal(kept, [b"the first", b"the second one"], "the newest is last")

    def test_foreign_files_with_equal_bytes_are_adopted(self, copies: Copies) -> None:
        """Their bytes are those to install, so nothing goes to the quarantine."""
        self.tamper("a.txt", b"same")

        _put(copies, "a.txt", b"same")

        _expect_no_trace(copies, "a.txt")

    def test_one_failed_installation_does_not_stop_the_batch(self, copies: Copies) -> None:
        """Each of a batch has its own result, in its place."""
        paths = [f"d{number}/e/f.txt" for number in range(self.many)]
        paths[1:1] = ["../outside.txt"]
        batch = [
            CopyInstallation(staged=_stage(copies, path.encode()), path=path) for path in paths
        ]

        found = copies.install(batch)

        expect_equal(len(found), len(paths), "there is a result for each")
        expect(isinstance(found[1], StorageError), "the error stands where its copy stood")
        wrong = [
            name for name, item in zip(paths, found, strict=True) if isinstance(item, StorageError)
        ]
        expect_equal(wrong, paths[1:2], "the other copies are installed")
        expect_equal(sorted(copies.paths()), sorted({*paths} - {paths[1]}), "and listed")

    def test_a_path_outside_the_mirror_is_refused(self, copies: Copies) -> None:
        """Paths outside the mirror, without a name, or reserved: nothing is put, read or moved."""
        for path in _HOSTILE:
            (found,) = copies.install([CopyInstallation(staged=_stage(copies, b"bad"), path=path)])
            expect(isinstance(found, StorageError), f"nothing is put at {path!r}")
            expect_equal(copies.signature(path), None, f"nothing is found at {path!r}")
            expect_equal(copies.digest(path, ["md5"]), None, f"nothing is read at {path!r}")
            expect(copies.stage_copy(path, ["md5"]) is None, f"nothing is copied from {path!r}")
            (gone,) = copies.remove([CopyRemoval(path=path, signature="1")], "deleted")
            expect(gone == "" or isinstance(gone, StorageError), f"nothing leaves {path!r}")
        expect_equal(list(copies.paths()), [], "nothing is there")

    def test_nothing_is_put_below_a_copy(self, copies: Copies) -> None:
        """A path is a file or a folder, never both."""
        if not self.has_folders:
            pytest.skip("the copies are in no folders")
        _put(copies, "a", b"a copy")
        _put(copies, "b/c", b"another")
        for path in ("a/b", "b"):
            (found,) = copies.install([CopyInstallation(staged=_stage(copies, b"x"), path=path)])
            code = found.code if isinstance(found, StorageError) else found
            expect_equal(code, "path-in-the-way", f"{path} cannot be put")

        _expect_contents(copies, {"a": b"a copy", "b/c": b"another"})

    def test_a_removed_copy_is_in_the_trash(self, copies: Copies) -> None:
        """Its path is free, and its bytes are in the trash under the returned name."""
        _put(copies, "a/c.txt", b"stays")
        signature = _put(copies, "a/b.txt", b"goes")

        (place,) = copies.remove([CopyRemoval(path="a/b.txt", signature=signature)], "deleted")

        expect(isinstance(place, str) and place, "remove returns its place in the trash")
        expect_equal(list(copies.trashed()), [place], "it is in the trash")
        expect_equal(self.read_trashed(str(place)), b"goes", "its bytes are preserved")
        expect_equal(copies.signature("a/b.txt"), None, "it is gone from its place")
        expect_equal(list(copies.paths()), ["a/c.txt"], "the trash is not listed")
        again = copies.remove([CopyRemoval(path="a/b.txt", signature=signature)], "deleted")
        expect_equal(again, [""], "a missing copy is no error")

    def test_a_trashed_copy_can_be_staged(self, copies: Copies) -> None:
        """Its bytes can be installed, and stay in the trash until they are purged."""
        signature = _put(copies, "a/b.txt", b"goes")
        (place,) = copies.remove([CopyRemoval(path="a/b.txt", signature=signature)], "deleted")
        expect(isinstance(place, str) and place, "remove returns its place in the trash")

        staged = copies.stage_trashed(str(place), ["sha-256", "md5"])

        expect(staged is not None, "a trashed copy can be staged")
        if staged is not None:
            expect_equal(staged.seal(), (4, _digests(b"goes")), "its bytes are the same")
            _install(copies, staged, "a/b.txt")
        _expect_contents(copies, {"a/b.txt": b"goes"})
        expect_equal(list(copies.trashed()), [place], "they are in the trash still")
        expect(copies.stage_trashed("nothing", ["md5"]) is None, "nothing is not in the trash")
        raised = None
        try:
            copies.stage_trashed("../a/b.txt", ["md5"])
        except StateError as error:
            raised = error
        expect(raised, "a name that leads out of the trash is a damaged state")

    def test_a_locally_modified_copy_is_not_removed(self, copies: Copies) -> None:
        """Only a copy with the given bytes is removed; the rest of the batch is."""
        content = CopyContent(4, str(_digests(b"ours")[0]))
        removals = [
            CopyRemoval(path=path, signature=_put(copies, path, b"ours"), content=content)
            for path in ("a.txt", "b.txt")
        ]
        self.tamper("a.txt", b"edit")

        found = copies.remove(removals, "deleted")

        code = found[0].code if isinstance(found[0], StorageError) else found[0]
        expect_equal(code, "local-change", "the local change is reported")
        _expect_contents(copies, {"a.txt": b"edit"})
        expect_equal(list(copies.trashed()), [found[1]], "the other one is in the trash")

    def test_a_removed_altered_file_goes_to_the_quarantine(self, copies: Copies) -> None:
        """Whatever it is: not to the trash, which is emptied some day."""
        signature = _put(copies, "a.txt", b"ours")
        self.tamper("a.txt", b"somebody's own")

        removal = CopyRemoval(path="a.txt", signature=signature, is_altered=True)
        expect_equal(copies.remove([removal], "deleted"), [""], "it does not go to the trash")

        ((path, place),) = copies.newly_quarantined()
        expect_equal(
            (path, self.read_quarantined(place)), ("a.txt", b"somebody's own"), "it is preserved"
        )
        expect_equal(list(copies.trashed()), [], "the trash is empty")
        expect_equal(copies.signature("a.txt"), None, "it is gone from its place")

    def test_a_copy_moves_with_its_bytes(self, copies: Copies) -> None:
        """`move` returns the signature at the new path; a second move changes nothing."""
        before = _put(copies, "a.txt", b"moves")
        _put(copies, "c.txt", b"stays")

        for _ in range(2):
            signature = _move(copies, "a.txt", "b/c.txt", before)
            expect_equal(signature, copies.signature("b/c.txt"), "the signature is that of now")
            _expect_contents(copies, {"b/c.txt": b"moves", "c.txt": b"stays"})
            expect_equal(sorted(copies.paths()), ["b/c.txt", "c.txt"], "it is at one path")
        _expect_no_trace(copies, "a.txt")
        _expect_no_trace(copies, "b/c.txt")

    def test_moving_a_missing_copy_does_nothing(self, copies: Copies) -> None:
        """A missing copy is no error; its signature stays as it was."""
        expect_equal(_move(copies, "a.txt", "b.txt", "1"), "1", "the signature stays")
        _put(copies, "c.txt", b"another")
        expect_equal(_move(copies, "a/b.txt", "c.txt", "1"), "1", "the signature stays")

        _expect_contents(copies, {"c.txt": b"another"})
        expect_equal(list(copies.paths()), ["c.txt"], "nothing else is there")
        _expect_no_trace(copies, "c.txt")

    def test_a_copy_that_moved_may_have_left_its_name_to_a_folder(self, copies: Copies) -> None:
        """So a run that was killed goes on, whatever it had done by then."""
        signature = _put(copies, "a", b"one")
        _move(copies, "a", "b", signature)
        _put(copies, "a/c", b"two")

        again = _move(copies, "a", "b", signature)

        expect_equal(again, copies.signature("b"), "the new key has it")
        _expect_contents(copies, {"b": b"one", "a/c": b"two"})
        _expect_no_trace(copies, "b")

    def test_a_file_at_the_new_path_goes_to_the_quarantine(self, copies: Copies) -> None:
        """The file is moved to the quarantine, and `newly_quarantined` lists it."""
        signature = _put(copies, "a.txt", b"ours")
        self.tamper("b.txt", b"somebody's own")

        _move(copies, "a.txt", "b.txt", signature)

        made_way = copies.newly_quarantined()
        expect_equal([path for path, _ in made_way], ["b.txt"], "it is reported")
        kept = [self.read_quarantined(place) for place in copies.quarantined("b.txt")]
        expect_equal(kept, [b"somebody's own"], "its bytes are preserved")
        _expect_contents(copies, {"b.txt": b"ours"})
        expect_equal(list(copies.paths()), ["b.txt"], "nothing is left at the old path")

    def test_an_edited_copy_moves_with_its_edits(self, copies: Copies) -> None:
        """The edited copy does not count as ours: the returned signature is not its own."""
        signature = _put(copies, "a.txt", b"ours")
        self.tamper("a.txt", b"edited by hand")

        for _ in range(2):
            found = _move(copies, "a.txt", "b.txt", signature)
            expect(found != copies.signature("b.txt"), "it is known to be edited")
        _expect_contents(copies, {"b.txt": b"edited by hand"})
        expect_equal(list(copies.paths()), ["b.txt"], "it is at one path")

    def test_a_copy_is_never_moved_outside_the_mirror(self, copies: Copies) -> None:
        """Nor from: the copy stays where it is."""
        signature = _put(copies, "a.txt", b"ours")
        for path in _HOSTILE:
            (found,) = copies.move([CopyMove(path="a.txt", to=path, signature=signature)])
            expect(isinstance(found, StorageError), f"nothing is moved to {path!r}")
            (found,) = copies.move([CopyMove(path=path, to="b.txt", signature="1")])
            expect(found == "1" or isinstance(found, StorageError), f"nothing from {path!r}")

        _expect_contents(copies, {"a.txt": b"ours"})
        expect_equal(list(copies.paths()), ["a.txt"], "nothing else is there")

    def test_one_failed_move_does_not_stop_the_batch(self, copies: Copies) -> None:
        """Each of a batch has its own result, in its place; those that can move have."""
        paths = [f"d{number}/f.txt" for number in range(self.many)]
        moves = [
            CopyMove(path=path, to=f"{path}!", signature=_put(copies, path, b"x")) for path in paths
        ]
        moves[1] = CopyMove(path=moves[1].path, to="../outside.txt", signature=moves[1].signature)

        found = copies.move(moves)

        wrong = [number for number, item in enumerate(found) if isinstance(item, StorageError)]
        expect_equal((len(found), wrong), (len(moves), [1]), "one error stands where its copy did")
        there = {
            copy_move.path if number == 1 else copy_move.to
            for number, copy_move in enumerate(moves)
        }
        expect_equal(set(copies.paths()), there, "the other copies have moved")

    def test_folders_emptied_by_moving_are_removed(self, copies: Copies) -> None:
        """Folders that are empty now go, those that are not stay; so their names are free."""
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

    def test_nothing_is_moved_onto_a_folder(self, copies: Copies) -> None:
        """Nothing is moved below a copy either: a path is a file or a folder."""
        if not self.has_folders:
            pytest.skip("the copies are in no folders")
        signature = _put(copies, "a", b"a copy")
        _put(copies, "b/c", b"another")
        for path in ("b", "b/c/d"):
            (found,) = copies.move([CopyMove(path="a", to=path, signature=signature)])
            code = found.code if isinstance(found, StorageError) else found
            expect_equal(code, "path-in-the-way", f"nothing is moved to {path}")

        _expect_contents(copies, {"a": b"a copy", "b/c": b"another"})

    def test_foreign_changes_are_detected(self, copies: Copies) -> None:
        """Other bytes have another signature, and `digest` reads the present bytes."""
        before = _put(copies, "a.txt", b"ours")
        self.tamper("a.txt", b"their")
        self.tamper("b.txt", b"theirs")

        after = copies.signature("a.txt")
        expect(after and after != before, "a signature changes with the bytes")
        _expect_contents(copies, {"a.txt": b"their", "b.txt": b"theirs"})
        expect_equal(sorted(copies.paths()), ["a.txt", "b.txt"], "foreign files are listed")


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
    expect(isinstance(found, str) and found, f"a copy is put at {path}: {found}")
    return str(found)


def _move(copies: Copies, path: str, to: str, signature: str) -> str:
    (found,) = copies.move([CopyMove(path=path, to=to, signature=signature)])
    expect(isinstance(found, str), f"{path} moves to {to}: {found}")
    return str(found)


def _digests(body: bytes) -> tuple[Digest, ...]:
    return (
        Digest("sha-256", hashlib.sha256(body).hexdigest()),
        Digest("md5", hashlib.md5(body, usedforsecurity=False).hexdigest()),
    )


def _expect_contents(copies: Copies, held: Mapping[str, bytes]) -> None:
    """Check which bytes are at some paths, by their digests."""
    for path, body in held.items():
        found = copies.digest(path, ["sha-256", "md5"])
        expect(found is not None, f"there is a copy at {path}")
        expect_equal(found, (len(body), _digests(body)), f"the copy at {path} has its bytes")


def _expect_no_trace(copies: Copies, path: str) -> None:
    expect_equal(
        (copies.newly_quarantined(), list(copies.quarantined(path))), ([], []), "nothing made way"
    )
