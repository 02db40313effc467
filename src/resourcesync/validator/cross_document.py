"""Checks between documents: what a document states of those it lists, against them (§6 to §13).

Only documents that were given are compared: a link that leads to none of them is not checked.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from resourcesync.model.timestamps import known_microseconds
from resourcesync.model.vocabulary import WELL_KNOWN_PATH, Capability
from resourcesync.validator._examined_document import capability_of
from resourcesync.validator.crawl import join_reference
from resourcesync.validator.marks import count_missing, count_repeated
from resourcesync.validator.rule import RuleFinding
from resourcesync.validator.summaries import DocumentSummary, ListedTarget, at_root, at_target

Known = Mapping[str, DocumentSummary]

_INDEX_LINK_RULES: Final = {
    Capability.RESOURCE_LIST: "RL03",
    Capability.RESOURCE_DUMP: "RD01b",
    Capability.CHANGE_LIST: "CH02b",
    Capability.CHANGE_DUMP: "CD01b",
}


def judge_announcements(document: DocumentSummary, known: Known) -> Iterator[RuleFinding]:
    """Check the entries of a Source Description or a Capability List (§6.2, §8, §9)."""
    if document.capability is Capability.DESCRIPTION and not document.is_index:
        yield from _judge_sets(document, known)
    elif document.capability is Capability.CAPABILITY_LIST:
        for target in document.targets:
            found = known.get(target.uri)
            if found is not None:
                announced = capability_of(target.label)
                if announced is not None and announced is not found.capability:
                    message = f"{target.uri} is a {found.phrase}, not a {announced.phrase}"
                    yield at_target("G08", message, document, target)
                elif found.link("up") not in (None, document.uri):
                    message = f"up of {target.uri} leads to {found.link('up')}"
                    yield at_target("CA08", message, document, target)


def _judge_sets(document: DocumentSummary, known: Known) -> Iterator[RuleFinding]:
    seen: set[str] = set()
    for target in document.targets:
        if target.uri in seen:
            yield at_target("SD11", f"{target.uri} is listed twice", document, target)
        seen.add(target.uri)
        found = known.get(target.uri)
        if found is None:
            continue
        if found.capability is not Capability.CAPABILITY_LIST:
            yield at_target("G08", f"{target.uri} is a {found.phrase}", document, target)
        elif found.link("up") not in (document.uri, document.link("index")):
            message = f"up of {target.uri} leads to {found.link('up') or 'nothing'}"
            yield at_target("SD11", message, document, target)


def judge_parts(document: DocumentSummary, known: Known) -> Iterator[RuleFinding]:
    """Check the entries of an index by its parts (§10.2, §11.1, §12.2, §13.1)."""
    if not document.is_index or document.capability not in _INDEX_LINK_RULES:
        return
    parts = [(target, known[target.uri]) for target in document.targets if target.uri in known]
    for target, part in parts:
        if part.is_index:
            yield at_target("G21", f"{target.uri} is an index itself", document, target)
        elif part.capability is not document.capability:
            rule = "RI05" if document.capability is Capability.RESOURCE_LIST else "G08"
            yield at_target(rule, f"{target.uri} is a {part.phrase}", document, target)
        else:
            yield from _judge_part(document, target, part)
    if document.capability is Capability.RESOURCE_LIST:
        yield from _judge_overlap(document, [part for _, part in parts])


def _judge_part(
    document: DocumentSummary, target: ListedTarget, part: DocumentSummary
) -> Iterator[RuleFinding]:
    assert document.capability is not None
    back = part.link("index")
    if back is None:
        message = f"{document.uri} lists it, and it has no index link"
        yield at_root(_INDEX_LINK_RULES[document.capability], message, part)
    elif back != document.uri:
        message = f"index leads to {back}, and {document.uri} lists it"
        is_list = document.capability is Capability.RESOURCE_LIST
        rule = "RI05" if is_list else _INDEX_LINK_RULES[document.capability]
        yield at_root(rule, message, part)
    if document.capability is Capability.RESOURCE_LIST:
        yield from _judge_snapshot(document, target, part)
    elif document.capability is Capability.CHANGE_LIST:
        yield from _judge_interval(document, target, part)


def _judge_snapshot(
    document: DocumentSummary, target: ListedTarget, part: DocumentSummary
) -> Iterator[RuleFinding]:
    if target.at is not None and part.at is not None and target.at != part.at:
        yield at_target("RI04", f"at is not the {part.at:%FT%TZ} of the part", document, target)
    if document.at is not None and part.at is not None and part.at < document.at:
        yield at_target("RI04", "the part is older than the index", document, target)
    if document.completed and part.completed and part.completed > document.completed:
        yield at_target("RI04", "the part was completed after the index", document, target)


def _judge_interval(
    document: DocumentSummary, target: ListedTarget, part: DocumentSummary
) -> Iterator[RuleFinding]:
    if part.until is None and target.until is not None:
        yield at_target("CI04", "until on a list that is open", document, target)
    elif part.until is not None and target.until is None:
        yield at_target("CI04", "no until on a list that is closed", document, target)
    elif target.until != part.until:
        message = f"until is not the {part.until:%FT%TZ} of the list"
        yield at_target("CI07", message, document, target)
    if target.from_ is not None and part.from_ is not None and target.from_ != part.from_:
        message = f"from is not the {part.from_:%FT%TZ} of the list"
        yield at_target("CI07", message, document, target)


def _judge_overlap(
    document: DocumentSummary, parts: list[DocumentSummary]
) -> Iterator[RuleFinding]:
    for part, repeated in zip(
        parts, count_repeated([part.resources for part in parts]), strict=True
    ):
        if repeated:
            message = f"{repeated} of its resources are in other parts of {document.uri} too"
            yield at_root("RI06", message, part)


_MOST_STEPS: Final = 10


def judge_together(
    documents: Sequence[DocumentSummary], *, whole_source: bool = False
) -> Iterator[RuleFinding]:
    """Compare documents with each other."""
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
    """Check that a document has the announced capability (§6.1, §9)."""
    if capability_of(expected) is not summary.capability or (
        summary.capability is None and expected.strip() != summary.label
    ):
        yield at_root("G08", f"a {summary.phrase} where {expected} was announced", summary)


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
        yield at_root("AR05", f"archives leads to a {target.phrase}", document)


def _of(documents: Sequence[DocumentSummary], capability: Capability) -> list[DocumentSummary]:
    return [
        document
        for document in documents
        if document.capability is capability and document.complete
    ]


def _judge_coverage(documents: Sequence[DocumentSummary]) -> Iterator[RuleFinding]:
    manifests = _of(documents, Capability.RESOURCE_DUMP_MANIFEST)
    dumps = _of(documents, Capability.RESOURCE_DUMP)
    packages = sum(len(dump.targets) for dump in dumps if not dump.is_index)
    lists = [
        summary for summary in _of(documents, Capability.RESOURCE_LIST) if not summary.is_index
    ]
    if not lists or not packages or len(manifests) != packages:
        return
    # Changes between two moments are unknown: only documents of one moment are compared.
    lists = [
        summary
        for summary in lists
        if summary.at is None or all(manifest.at == summary.at for manifest in manifests)
    ]
    counts = count_missing(
        [summary.resources for summary in lists], [manifest.resources for manifest in manifests]
    )
    for resource_list, missing in zip(lists, counts, strict=True):
        if missing:
            message = f"{missing} of its resources are in no package of the Resource Dump"
            yield at_root("CA09", message, resource_list)


def _judge_packed(documents: Sequence[DocumentSummary]) -> Iterator[RuleFinding]:
    """Check that each change that a Change List has is in the package of its interval (§13.2)."""
    lists = [summary for summary in _of(documents, Capability.CHANGE_LIST) if not summary.is_index]
    manifests = _of(documents, Capability.CHANGE_DUMP_MANIFEST)
    for manifest in manifests:
        if manifest.from_ is None:
            continue
        after = [summary for summary in manifests if summary.from_ == manifest.until]
        packed = {mark for summary in (manifest, *after) for mark in summary.changes}
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


def _judge_source(documents: Sequence[DocumentSummary]) -> Iterator[RuleFinding]:
    descriptions = [
        document for document in documents if document.capability is Capability.DESCRIPTION
    ]
    if documents and not descriptions:
        yield at_root("SD09", "the Source has no Source Description", documents[0])
    places = {urlsplit(description.uri).path for description in descriptions}
    if places and WELL_KNOWN_PATH not in places:
        yield at_root("SD08", f"it is served at {descriptions[0].uri}", descriptions[0])
    yield from _ungrouped(descriptions, "SD10")
    archives = [one for one in documents if one.capability is Capability.CHANGE_LIST_ARCHIVE]
    archived = _listed_by(archives)
    lists = [one for one in documents if one.capability is Capability.CHANGE_LIST]
    for capability_list in documents:
        if capability_list.capability is Capability.CAPABILITY_LIST:
            below = [one for one in lists if one.link("up") == capability_list.uri]
            yield from _ungrouped([one for one in below if one.uri not in archived], "CI09")


def _listed_by(documents: Sequence[DocumentSummary]) -> set[str]:
    return {join_reference(each.uri, target.uri) for each in documents for target in each.targets}


def _ungrouped(documents: Sequence[DocumentSummary], rule: str) -> Iterator[RuleFinding]:
    indexes = [document for document in documents if document.is_index]
    listed = _listed_by(indexes)
    alone = [
        document for document in documents if not document.is_index and document.uri not in listed
    ]
    if len(alone) > 1 or (alone and indexes):
        for document in alone:
            yield at_root(rule, "one of several, and in no index", document)
