"""Bytes of a resource that are made of those that were received: decoded, or patched.

Of a body in a content coding, what the Source lists decides: its length and its hash are of the
bytes as sent, or of their content, and only one of them fits. Where nothing is listed, the content
is the resource, unless the name of the file is that of the coding.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from resourcesync.destination.planner import Fetch, ListedEntry, algorithms_for
from resourcesync.destination.transfers import verification
from resourcesync.destination.transfers.commit import CommitBatch, StagedResource
from resourcesync.errors import BadResponseError, PatchError, ResourceSyncError, StorageError
from resourcesync.mirror_state.rows import PatchLink
from resourcesync.model.content_codings import CodingError, decode, is_named_after_coding
from resourcesync.model.digests import disagree, parse_digests, usable
from resourcesync.ports import Copies, FetchRequest, Proof, StagedCopy

if TYPE_CHECKING:
    from resourcesync.destination.pull_session import SyncSession

_PIECE: Final = 1 << 18
_NO_LIMIT: Final = 1 << 62


def is_to_be_decoded(listed: ListedEntry, uri: str, codings: tuple[str, ...]) -> bool:
    """True if nothing is listed that tells the form of a body, and its content is the resource."""
    return verification.proof_of(listed) is Proof.NONE and not is_named_after_coding(uri, codings)


def decode_staged(
    copies: Copies,
    staged: StagedCopy,
    codings: tuple[str, ...],
    algorithms: Sequence[str],
    length: int | None = None,
) -> StagedCopy:
    """Return a staged copy of the content of sealed bytes."""
    content = copies.stage(algorithms)
    try:
        for piece in decode(_chunks(staged), codings, _NO_LIMIT if length is None else length):
            content.write(piece)
    except CodingError as error:
        content.discard()
        raise BadResponseError(
            "the content coding of the response cannot be removed",
            evidence=(("got", f"Content-Encoding: {', '.join(codings)}: {error}"),),
            code="encoding",
        ) from error
    except BaseException:
        content.discard()
        raise
    return content


def _chunks(staged: StagedCopy) -> Iterator[bytes]:
    with closing(staged.open_sealed()) as stream:
        stream.seek(0)
        while chunk := stream.read(_PIECE):
            yield chunk


_MAX_REASON: Final = 300


class PatchApplication:
    """Application of patches to copies; the versions that they make go into a batch."""

    def __init__(self, pull: "SyncSession", batch: CommitBatch) -> None:
        self._copies, self._formats = pull.dependencies.copies, pull.dependencies.patches()
        self._own_algorithm, self._batch = pull.options.own_algorithm, batch

    def request(self, fetch: Fetch) -> FetchRequest:
        """Return the request for the patch."""
        patch, sink = _patch_link(fetch.listed), self.stage(fetch)
        # The version that it makes is proven by a strong digest: a condition of patches.
        return FetchRequest(uri=patch.uri, sink=sink, limit=patch.length, proof=Proof.BYTES)

    def stage(self, fetch: Fetch) -> StagedCopy:
        """Return the place for the bytes of the patch, if the copy is as it was fetched."""
        patch, before = _patch_link(fetch.listed), fetch.before
        if before is None or verification.check_installed(before, self._copies) is None:
            raise PatchError("the copy was changed locally since it was fetched")
        claims = usable(parse_digests(patch.hash))
        return self._copies.stage(tuple(dict.fromkeys(claim.algorithm for claim in claims)))

    def apply(self, fetch: Fetch, patch: StagedCopy) -> None:
        """Add the patched and verified version to the batch."""
        size, made = self._check_patch(fetch.listed, patch), self._made(fetch, patch)
        copy = self._batch.new_copy(fetch.listed, made.length, made.digests, made.fixity)
        self._batch.add(StagedResource(fetch, copy, made.staged, patched=size))

    def _made(self, fetch: Fetch, patch: StagedCopy) -> verification.ReceivedBytes:
        previous = self._stage_previous(fetch)
        result = self._copies.stage(algorithms_for(fetch.listed, self._own_algorithm))
        try:
            self._run_patch(fetch.listed, previous, patch, result)
            made = verification.verify_staged(fetch.listed, result)
        except BaseException:
            result.discard()
            raise
        finally:
            previous.discard()
        if made.wrong is not None:  # by a strong digest: a condition of patches
            result.discard()
            raise PatchError("the patched version is not as listed")
        return made

    def _check_patch(self, listed: ListedEntry, staged: StagedCopy) -> int:
        patch = _patch_link(listed)
        length, found = staged.seal()
        if patch.is_exact and length != patch.length:
            raise PatchError(f"the patch has {length} B, not {patch.length} B")
        if disagree(found, usable(parse_digests(patch.hash))):
            raise PatchError("the patch does not match the hash of its link")
        return length

    def _stage_previous(self, fetch: Fetch) -> StagedCopy:
        before = fetch.before
        assert before is not None, "a request was made for it"
        known = parse_digests(before.digests)
        staged = self._copies.stage_copy(before.path, [digest.algorithm for digest in known])
        if staged is None:
            raise PatchError("the copy cannot be read")
        length, found = staged.seal()
        if length != before.length or found != known:
            staged.discard()
            raise PatchError("the copy was changed locally since it was fetched")
        return staged

    def _run_patch(
        self, listed: ListedEntry, previous: StagedCopy, patch: StagedCopy, result: StagedCopy
    ) -> None:
        assert listed.length is not None, "without a length there is no patch"
        from resourcesync.documents.patches.limits import BoundedSink  # noqa: PLC0415 - rarely

        refusal = "the patched version is longer than listed"
        sink = cast("BinaryIO", BoundedSink(result.write, listed.length, refusal))
        try:
            apply = self._formats[_patch_link(listed).media_type].load()
            with closing(previous.open_sealed()) as before, closing(patch.open_sealed()) as changes:
                before.seek(0)
                changes.seek(0)
                apply(before, changes, sink, listed.length)
        except StorageError:
            raise
        except ResourceSyncError as error:
            raise PatchError(error.message) from error
        except Exception as error:  # a plug-in is foreign code, which may raise anything
            raise PatchError(f"{type(error).__name__}: {error}"[:_MAX_REASON]) from error


def _patch_link(listed: ListedEntry) -> PatchLink:
    assert listed.patch is not None, "called only for entries with a patch"
    return listed.patch
