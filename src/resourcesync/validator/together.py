"""Compares what several documents of a Source say of each other (§6 to §13).

Only documents that were given are compared: a link that leads to none of them is not judged.
"""

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from resourcesync.model.timestamps import known_microseconds
from resourcesync.model.vocabulary import WELL_KNOWN_PATH, Capability
from resourcesync.validator._announced import judge_announcements, judge_parts
from resourcesync.validator._subject import capability_of
from resourcesync.validator._telling import at_root
from resourcesync.validator.findings import RuleFinding
from resourcesync.validator.marks import count_missing
from resourcesync.validator.summaries import DocumentSummary

_MOST_STEPS: Final = 10


def judge_together(
    documents: Sequence[DocumentSummary], *, whole_source: bool = False
) -> Iterator[RuleFinding]:
    """Judge what documents say of each other.

    Args:
        documents: What was read of each, every address once.
        whole_source: Whether these are all the documents of the Source, so that what is missing
            here is missing there.
    """
    known = {document.uri: document for document in documents}
    for document in documents:
        yield from _judge_climb(document, known)
        yield from judge_announcements(document, known)
        yield from judge_parts(document, known)
        yield from _judge_archives(document, known)
    yield from _judge_coverage(documents)
    yield from _judge_packed(documents)
    if whole_source:
        yield from _judge_source(documents)


def judge_announced(expected: str, summary: DocumentSummary) -> Iterator[RuleFinding]:
    """Judge a document by the capability that the caller was promised (§6.1, §9)."""
    if capability_of(expected) is not summary.capability or (
        summary.capability is None and expected.strip() != summary.label
    ):
        yield at_root("G08", f"a {summary.phrase} where {expected} was announced", summary)


def judge_reread(before: DocumentSummary, now: DocumentSummary) -> Iterator[RuleFinding]:
    """Judge a Change List or Change Dump that was read twice (§7, §12.1)."""
    if before.capability not in (Capability.CHANGE_LIST, Capability.CHANGE_DUMP_MANIFEST):
        return
    if before.until is not None:
        if (before.from_, before.until, before.changes) != (now.from_, now.until, now.changes):
            yield at_root("CH10", "the list was closed and is not what it was", now)
    elif not now.changes.begins_with(before.changes):
        yield at_root("CH11", "entries that were there before are gone or different", now)


# --- upwards ------------------------------------------------------------------------------------


def _judge_climb(
    document: DocumentSummary, known: dict[str, DocumentSummary]
) -> Iterator[RuleFinding]:
    here, seen = document, [document.uri]
    while (above := here.link("up")) is not None and above in known:
        if above in seen or len(seen) > _MOST_STEPS:
            yield at_root("G43", f"following up comes back to {above}", document)
            return
        seen.append(above)
        here = known[above]
    is_top = here.capability is Capability.DESCRIPTION
    if here is not document and not is_top and here.link("up") is None:
        yield at_root("G43", f"following up ends at {here.uri}, a {here.phrase}", document)


def _judge_archives(
    document: DocumentSummary, known: dict[str, DocumentSummary]
) -> Iterator[RuleFinding]:
    target = known.get(document.link("archives") or "")
    if target is None or document.capability is None or target.capability is None:
        return
    if target.capability is not document.capability.archive:
        message = f"archives leads to a {target.phrase}"
        yield at_root("AR05", message, document)


# --- the same resources in several documents ----------------------------------------------------


def _of(documents: Sequence[DocumentSummary], capability: Capability) -> list[DocumentSummary]:
    return [it for it in documents if it.capability is capability and it.complete]


def _judge_coverage(documents: Sequence[DocumentSummary]) -> Iterator[RuleFinding]:
    manifests = _of(documents, Capability.RESOURCE_DUMP_MANIFEST)
    dumps = _of(documents, Capability.RESOURCE_DUMP)
    packages = sum(len(dump.targets) for dump in dumps if not dump.is_index)
    lists = [it for it in _of(documents, Capability.RESOURCE_LIST) if not it.is_index]
    if not lists or not packages or len(manifests) != packages:
        return
    # What was between two moments is not known here: only accounts of one moment are compared.
    lists = [it for it in lists if it.at is None or all(one.at == it.at for one in manifests)]
    counts = count_missing([it.resources for it in lists], [it.resources for it in manifests])
    for resource_list, missing in zip(lists, counts, strict=True):
        if missing:
            message = f"{missing} of its resources are in no package of the Resource Dump"
            yield at_root("CA09", message, resource_list)


def _judge_packed(documents: Sequence[DocumentSummary]) -> Iterator[RuleFinding]:
    """Judge whether each change that a Change List has is in the package of its interval (§13.2).

    Where two intervals meet, a change of that very moment may be in either package. So it is
    judged at the package that ends then: the one before may be listed no more.
    """
    lists = [it for it in _of(documents, Capability.CHANGE_LIST) if not it.is_index]
    manifests = _of(documents, Capability.CHANGE_DUMP_MANIFEST)
    for manifest in manifests:
        if manifest.from_ is None:
            continue
        after = [it for it in manifests if it.from_ == manifest.until]
        packed = {mark for it in (manifest, *after) for mark in it.changes}
        missing = sum(_count_unpacked(manifest, changes, packed) for changes in lists)
        if missing:
            message = f"{missing} changes of its interval are not in the package"
            yield at_root("CM06", message, manifest)


def _count_unpacked(manifest: DocumentSummary, changes: DocumentSummary, packed: set[int]) -> int:
    start = known_microseconds(manifest.from_)
    return sum(
        mark not in packed and manifest.covers(time) and time != start
        for mark, time in zip(changes.changes, changes.change_times, strict=True)
    )


# --- the Source as a whole ----------------------------------------------------------------------


def _judge_source(documents: Sequence[DocumentSummary]) -> Iterator[RuleFinding]:
    descriptions = [it for it in documents if it.capability is Capability.DESCRIPTION]
    if documents and not descriptions:
        yield at_root("SD09", "the Source has no Source Description", documents[0])
    if descriptions and not any(_is_well_known(it.uri) for it in descriptions):
        message = f"it is served at {descriptions[0].uri}"
        yield at_root("SD08", message, descriptions[0])
    yield from _ungrouped(descriptions, "SD10")
    for capability_list in documents:
        if capability_list.capability is Capability.CAPABILITY_LIST:
            below = [it for it in documents if it.link("up") == capability_list.uri]
            lists = [it for it in below if it.capability is Capability.CHANGE_LIST]
            yield from _ungrouped(lists, "CI09")


def _is_well_known(uri: str) -> bool:
    return urlsplit(uri).path == WELL_KNOWN_PATH


def _ungrouped(documents: Sequence[DocumentSummary], rule: str) -> Iterator[RuleFinding]:
    indexes = [it for it in documents if it.is_index]
    listed = {target.uri for index in indexes for target in index.targets}
    alone = [it for it in documents if not it.is_index and it.uri not in listed]
    if len(alone) > 1 or (alone and indexes):
        for document in alone:
            yield at_root(rule, "one of several, and in no index", document)
