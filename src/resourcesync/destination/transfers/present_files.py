"""Files that are in the mirror already, and used instead of a fetch: adopted, or copied."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from resourcesync.destination import planner
from resourcesync.destination.pull_session import SyncSession
from resourcesync.destination.transfers.commit import CommitBatch, StagedResource
from resourcesync.destination.transfers.verification import verify_staged
from resourcesync.errors import StorageError
from resourcesync.mirror_state.rows import LARGE, Copy, Fixity
from resourcesync.model.digests import STRONG, Digest, agree, format_digests, parse_digests, usable

_MAX_EXPECTED: Final = 4_096


class PresentFiles:
    """The files of a mirror during a transfer."""

    def __init__(self, pull: SyncSession, batch: CommitBatch, *, adopts: bool) -> None:
        self._copies, self._state = pull.dependencies.copies, pull.state
        self._own_algorithm = pull.options.own_algorithm
        self._batch, self._adopts = batch, adopts
        self._expected: dict[str, None] = {}

    def use(self, fetch: planner.Fetch, wait: Callable[[], bool]) -> bool:
        """Use bytes that are in the mirror already; return whether there are any.

        The Source itself must serve what its lists dispute, or what it served otherwise. ``wait``
        puts the fetch off until others have ended, if it may.
        """
        before, listed = fetch.before, fetch.listed
        if listed.undated or (before is not None and before.is_stale):
            return False
        claims = [d for d in usable(parse_digests(listed.hash)) if d.algorithm in STRONG]
        if not claims:
            return False
        is_adopted = self._adopts and self._adopt(fetch, claims)
        return is_adopted or self._use_duplicate(fetch, claims, wait)

    def _adopt(self, fetch: planner.Fetch, claims: Sequence[Digest]) -> bool:
        listed, before = fetch.listed, fetch.before
        signature = self._copies.signature(listed.path)
        if signature is None or (before is not None and before.signature == signature):
            return False
        algorithms, found = planner.algorithms_for(listed, self._own_algorithm), None
        with suppress(StorageError):  # one that cannot be read is moved to quarantine
            found = self._copies.digest(listed.path, algorithms)
        if found is None or not agree(found[1], claims):
            return False
        length, digests = found
        copy = self._batch.new_copy(listed, length, format_digests(digests), Fixity.VERIFIED)
        copy = copy._replace(signature=signature, installed=self._batch.now())
        self._batch.add(StagedResource(fetch, copy, None))
        return True

    def _use_duplicate(
        self, fetch: planner.Fetch, claims: Sequence[Digest], wait: Callable[[], bool]
    ) -> bool:
        listed = fetch.listed
        if listed.length is None or listed.length < LARGE:
            return False
        own = self._own_algorithm
        digest = next((str(claim) for claim in claims if claim.algorithm == own), "")
        if not digest:
            return False
        known = self._state.copy_by_digest(digest, listed.length)
        if known is not None:
            return self._copy_local(fetch, known)
        if digest in self._expected and wait():
            return True
        self._expected[digest] = None
        if len(self._expected) > _MAX_EXPECTED:
            del self._expected[next(iter(self._expected))]
        return False

    def _copy_local(self, fetch: planner.Fetch, known: Copy) -> bool:
        listed = fetch.listed
        algorithms = planner.algorithms_for(listed, self._own_algorithm)
        staged = self._copies.stage_copy(known.path, algorithms)
        if staged is None:
            return False
        received = verify_staged(listed, staged)
        if received.wrong is not None:
            staged.discard()  # that copy was changed locally
            return False
        copy = self._batch.new_copy(listed, received.length, received.digests, received.fixity)
        self._batch.add(StagedResource(fetch, copy, staged, local=True))
        return True
