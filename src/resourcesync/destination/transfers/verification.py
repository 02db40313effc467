"""Verification of received bytes by length and digests; and answers that many resources share.

Where the list has no hash, the digests of the answer count (RFC 9530): they prove that the bytes
arrived as the server has them, not that they are what the Source listed.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Final, NamedTuple

from resourcesync.destination.options import Dependencies
from resourcesync.destination.planner import ListedEntry, as_suspect
from resourcesync.errors import StorageError
from resourcesync.mirror_state.rows import EDITED, Copy, Fixity, StateTransaction
from resourcesync.model.digests import (
    FIELD_ALGORITHMS,
    WANTED,
    Digest,
    agree,
    contradiction,
    format_digests,
    format_wanted,
    has_strong,
    is_sha256,
    parse_digests,
    served_digests,
    usable,
)
from resourcesync.ports import CopyContent, CopyInspector, Proof, StagedCopy, has_content

DIGEST_MISMATCH: Final = "digest-mismatch"
"""Error code: the server's digest of an answer is not that of its bytes."""

_ONE_STRONG: Final = "sha-256:"
_PIECE: Final = 1 << 20


def verify_bytes(
    listed: ListedEntry, length: int, digests: str
) -> tuple[Fixity, tuple[str, str, str] | None]:
    """Return how well received bytes are proven, and their mismatch if there is one."""
    if listed.hash == digests and digests.startswith(_ONE_STRONG) and listed.length == length:
        return Fixity.VERIFIED, None  # the common case, without parsing the digests
    if listed.rivals:
        judged = [verify_bytes(rival, length, digests) for rival in listed.candidates()]
        return next((item for item in judged if item[1] is None), judged[-1])
    if listed.length is not None and listed.length != length:
        return Fixity.UNVERIFIED, ("length-mismatch", f"{listed.length} B", f"{length} B")
    claims = usable(parse_digests(listed.hash))
    found = parse_digests(digests)
    wrong = contradiction(found, claims)
    if wrong is not None:
        actual, claim = wrong
        return Fixity.UNVERIFIED, ("hash-mismatch", str(claim), str(actual))
    if claims and agree(found, claims):
        return (Fixity.VERIFIED if has_strong(claims) else Fixity.WEAK), None
    return (Fixity.WEAK if listed.length is not None else Fixity.UNVERIFIED), None


def proof_of(listed: ListedEntry) -> Proof:
    """Return the means that an entry gives to check the bytes of its resource."""
    if listed.rivals:
        return min(map(proof_of, listed.candidates()))
    if is_sha256(listed.hash):  # the common case, without parsing the digests
        return Proof.BYTES
    claims = usable(parse_digests(listed.hash))
    if has_strong(claims):
        return Proof.BYTES
    return Proof.NONE if listed.length is None and not claims else Proof.END


def describe_mismatch(wrong: tuple[str, str, str]) -> str:
    """Return the sentence for a mismatch found by ``verify_bytes`` or ``verify_answer``."""
    code, expected, actual = wrong
    if code == DIGEST_MISMATCH:
        return f"the server's own digest says {expected}, its bytes are {actual}"
    return f"the list says {expected}, the Source served {actual}"


def wanted_fields(own: str) -> tuple[tuple[str, str], ...]:
    """Return the fields of a request for a resource without a listed hash (RFC 9530 §4)."""
    return ((WANTED, format_wanted(own if own in FIELD_ALGORITHMS else FIELD_ALGORITHMS[0])),)


class AnswerProof(NamedTuple):
    """The result of ``verify_answer``.

    ``mismatch`` is ``(code, expected, actual)``. ``is_malformed``: a digest field cannot be read,
    and was ignored.
    """

    is_verified: bool = False
    mismatch: tuple[str, str, str] | None = None
    is_malformed: bool = False


def verify_answer(
    headers: Mapping[str, str], staged: StagedCopy, found: Sequence[Digest]
) -> AnswerProof:
    """Compare the bytes of an answer with the digests that its server sent with them."""
    served, is_malformed = served_digests(headers)
    if not served:
        return AnswerProof(is_malformed=is_malformed)
    known = {digest.algorithm: digest for digest in found}
    if known.keys().isdisjoint(digest.algorithm for digest in served):
        digest = _digest_staged(staged, served[0].algorithm)
        known[digest.algorithm] = digest
    for digest in served:
        actual = known.get(digest.algorithm, digest)
        if actual != digest:
            wrong = (DIGEST_MISMATCH, str(digest), str(actual))
            return AnswerProof(mismatch=wrong, is_malformed=is_malformed)
    return AnswerProof(is_verified=True, is_malformed=is_malformed)


class ReceivedBytes(NamedTuple):
    """Staged bytes, compared with what is listed; ``wrong`` is ``(code, expected, actual)``."""

    staged: StagedCopy
    length: int
    found: Sequence[Digest]
    digests: str
    fixity: Fixity
    wrong: tuple[str, str, str] | None
    has_bad_digest: bool = False

    def with_answer(self, served: AnswerProof) -> "ReceivedBytes":
        """Return them with what the digests of their server prove; the list counts before."""
        made = self._replace(has_bad_digest=served.is_malformed)
        if self.wrong is not None:
            return made
        fixity = Fixity.SERVER_VERIFIED if served.is_verified else self.fixity
        return made._replace(wrong=served.mismatch, fixity=fixity)


def verify_staged(listed: ListedEntry, staged: StagedCopy) -> ReceivedBytes:
    """Seal staged bytes, and compare them with what is listed."""
    length, found = staged.seal()
    digests = format_digests(found)
    fixity, wrong = verify_bytes(listed, length, digests)
    return ReceivedBytes(staged, length, found, digests, fixity, wrong)


def _digest_staged(staged: StagedCopy, algorithm: str) -> Digest:
    hasher = hashlib.new(algorithm.replace("-", ""), usedforsecurity=False)
    with closing(staged.open_sealed()) as stream:
        stream.seek(0)
        while piece := stream.read(_PIECE):
            hasher.update(piece)
    return Digest(algorithm, hasher.hexdigest())


_CHUNK: Final = 1_000


def installed_content(copy: Copy | None) -> CopyContent | None:
    """Return the content that was installed; ``None`` if a killed run left it unknown."""
    return None if copy is None or copy.is_unknown else CopyContent(copy.length, copy.digests)


def check_installed(copy: Copy, look: CopyInspector) -> Copy | None:
    """Return the copy with the present signature of its file, which is as installed."""
    if look.signature(copy.path) == copy.signature and not copy.is_unknown:
        return copy
    return read_installed(copy, look)


def read_installed(copy: Copy, look: CopyInspector) -> Copy | None:
    """Return the same as `check_installed`, and read every byte, whatever the signature is."""
    signature = look.signature(copy.path)  # first: one that changes while it is read is not learned
    if signature is None or not has_content(look, copy.path, installed_content(copy)):
        return None
    return copy if signature == copy.signature else copy._replace(signature=signature)


def recover_suspects(equipment: Dependencies, *, dry_run: bool) -> Mapping[str, Copy]:
    """Record which suspect copies are as installed again; return those of a dry run instead."""
    state = equipment.state
    suspects = filter(None, (state.copy(task.uri) for task in state.suspect_tasks()))
    found = inspected_copies(equipment, suspects, dry_run=dry_run)
    return {copy.uri: copy for copy in found if dry_run and not copy.is_suspect}


def inspected_copies(
    equipment: Dependencies, copies: Iterator[Copy], *, dry_run: bool
) -> Iterator[Copy]:
    """Yield copies as their files are now.

    The present signatures of those that are as installed are recorded, except in a dry run.
    """
    with equipment.copies.inspect() as look:
        while group := list(islice(copies, _CHUNK)):
            found = [inspected_copy(copy, look) for copy in group]
            pairs = zip(group, found, strict=True)
            learned = [now for was, now in pairs if now is not was and not now.is_suspect]
            if learned and not dry_run:
                equipment.state.commit(StateTransaction(suspect=learned))
            yield from found


def inspected_copy(copy: Copy, look: CopyInspector, *, by_bytes: bool = False) -> Copy:
    """Return the copy as its file is now: suspect if it is not as installed.

    Only an audit marks it as altered, which lets a deletion move its file.
    """
    check = read_installed if by_bytes else check_installed
    try:
        if sound := check(copy, look):
            return sound
        is_missing = look.signature(copy.path) is None
    except StorageError:  # it cannot be read
        is_missing = False
    if is_missing or copy.is_marked_by_audit:
        return as_suspect(copy, is_missing=is_missing)
    return copy._replace(signature=EDITED)


MANY_COPIES: Final = 5
"""Different copies that one answer would replace, from which it is taken for none of them."""
_MOST_ANSWERS: Final = 512
"""Answers that are told apart: more than one group has."""


class SharedAnswers:
    """The answers for many pages: a login, an error page, a notice of an outage.

    A sitemap has no hashes, so nothing else shows that such an answer is not the page: pages that
    differed become the same bytes, or are redirected to the same address. ``known`` answers are
    held, or true if the operator accepted them by a baseline.
    """

    def __init__(self, known: Mapping[str, bool]) -> None:
        self.known = dict(known)
        self._formers: dict[str, set[str]] = {}

    def add(self, answer: str, former: str, *, is_accepted: bool) -> None:
        """Add that an answer would replace a copy with these digests."""
        formers = self._formers[answer] = self._formers.pop(answer, set())
        if len(formers) < MANY_COPIES:
            formers.add(former)
        if len(formers) == MANY_COPIES or (is_accepted and answer in self.known):
            self.known[answer] = is_accepted or self.known.get(answer, False)
        for seen in (self._formers, self.known):
            if len(seen) > _MOST_ANSWERS:
                del seen[next(iter(seen))]

    def holds(self, answer: str) -> bool:
        """True if an answer is held: it replaces no copy."""
        return self.known.get(answer) is False
