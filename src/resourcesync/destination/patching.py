"""Make a version out of the one before and a patch; on any doubt the whole resource is fetched."""

from collections.abc import Mapping
from contextlib import closing
from typing import BinaryIO, Final, cast

from resourcesync.destination.patch_links import PatchLink
from resourcesync.destination.plan import Fetch, ListedEntry, algorithms_for, verify_bytes
from resourcesync.documents.patches.limits import BoundedSink
from resourcesync.errors import PatchError, ResourceSyncError, StorageError
from resourcesync.model.digests import disagree, format_digests, parse_digests, usable
from resourcesync.ports import Copies, FetchRequest, StagedCopy
from resourcesync.ports.patches import PatchFormat

_MAX_REASON: Final = 300


class PatchApplication:
    """Applies patches to copies.

    Args:
        copies: The mirror's files.
        formats: The known formats, by media type.
        own_algorithm: The digest recorded of every copy.
    """

    def __init__(
        self, copies: Copies, formats: Mapping[str, PatchFormat], own_algorithm: str
    ) -> None:
        self._copies = copies
        self._formats = formats
        self._own_algorithm = own_algorithm

    def request(self, fetch: Fetch) -> FetchRequest:
        """Return the request for the patch.

        Raises:
            PatchError: The copy is not there any more as it was fetched.
        """
        patch, before = _patch_link(fetch.listed), fetch.before
        if before is None or self._copies.signature(before.path) != before.signature:
            raise PatchError("our copy was changed here since it was fetched")
        claims = usable(parse_digests(patch.hash))
        sink = self._copies.stage(tuple(dict.fromkeys(it.algorithm for it in claims)))
        return FetchRequest(uri=patch.uri, sink=sink, limit=patch.length)

    def apply(self, fetch: Fetch, patch: StagedCopy) -> tuple[StagedCopy, int, str]:
        """Return the version that the patch leads to, proven; its length and its digests.

        Args:
            fetch: What is wanted, and the copy that the patch begins with.
            patch: The patch as it was received.

        Raises:
            PatchError: It does not lead to what is listed.
            StorageError: The mirror cannot be written.
        """
        self._check_patch(fetch.listed, patch)
        previous = self._stage_previous(fetch)
        result = self._copies.stage(algorithms_for(fetch.listed, self._own_algorithm))
        try:
            self._run_patch(fetch.listed, previous, patch, result)
            length, digests = _check_result(fetch.listed, result)
        except BaseException:
            result.discard()
            raise
        finally:
            previous.discard()
        return result, length, digests

    def _check_patch(self, listed: ListedEntry, staged: StagedCopy) -> None:
        patch = _patch_link(listed)
        length, found = staged.seal()
        if patch.is_exact and length != patch.length:
            raise PatchError(f"it has {length} B, not {patch.length} B")
        if disagree(found, usable(parse_digests(patch.hash))):
            raise PatchError("it is not what its link says")

    def _stage_previous(self, fetch: Fetch) -> StagedCopy:
        before = fetch.before
        assert before is not None, "a request was made for it"
        known = parse_digests(before.digests)
        staged = self._copies.stage_copy(before.path, [it.algorithm for it in known])
        if staged is None:
            raise PatchError("our copy cannot be read")
        length, found = staged.seal()
        if length != before.length or found != known:
            staged.discard()
            raise PatchError("our copy was changed here since it was fetched")
        return staged

    def _run_patch(
        self, listed: ListedEntry, previous: StagedCopy, patch: StagedCopy, result: StagedCopy
    ) -> None:
        assert listed.length is not None, "without a length there is no patch"
        refusal = "the result is larger than what is listed"
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


def _check_result(listed: ListedEntry, result: StagedCopy) -> tuple[int, str]:
    length, found = result.seal()
    digests = format_digests(found)
    _, wrong = verify_bytes(listed, length, digests)  # by a strong digest: else no patch is used
    if wrong is not None:
        raise PatchError("what it leads to is not what is listed")
    return length, digests


def _patch_link(listed: ListedEntry) -> PatchLink:
    assert listed.patch is not None, "asked only about what has a patch"
    return PatchLink._make(listed.patch)
