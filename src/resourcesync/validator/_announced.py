"""What a document says of those it lists, against what they say themselves (§8 to §13)."""

from collections.abc import Iterator, Mapping
from typing import Final

from resourcesync.model.vocabulary import Capability
from resourcesync.validator._subject import capability_of
from resourcesync.validator._telling import at_root, at_target
from resourcesync.validator.findings import RuleFinding
from resourcesync.validator.marks import count_repeated
from resourcesync.validator.summaries import DocumentSummary, ListedTarget

Known = Mapping[str, DocumentSummary]

_INDEX_LINK_RULES: Final = {
    Capability.RESOURCE_LIST: "RL03",
    Capability.RESOURCE_DUMP: "RD01b",
    Capability.CHANGE_LIST: "CH02b",
    Capability.CHANGE_DUMP: "CD01b",
}


def judge_announcements(document: DocumentSummary, known: Known) -> Iterator[RuleFinding]:
    """Judge the entries of a Source Description or a Capability List (§6.2, §8, §9)."""
    if document.capability is Capability.DESCRIPTION and not document.is_index:
        yield from _judge_sets(document, known)
    elif document.capability is Capability.CAPABILITY_LIST:
        for target in document.targets:
            found = known.get(target.uri)
            if found is not None:
                yield from _judge_listed(document, target, found)


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


def _judge_listed(
    document: DocumentSummary, target: ListedTarget, found: DocumentSummary
) -> Iterator[RuleFinding]:
    announced = capability_of(target.label)
    if announced is not None and announced is not found.capability:
        message = f"{target.uri} is a {found.phrase}, not a {announced.phrase}"
        yield at_target("G08", message, document, target)
    elif found.link("up") not in (None, document.uri):
        message = f"up of {target.uri} leads to {found.link('up')}"
        yield at_target("CA08", message, document, target)


def judge_parts(document: DocumentSummary, known: Known) -> Iterator[RuleFinding]:
    """Judge the entries of an index by its parts (§10.2, §11.1, §12.2, §13.1)."""
    if not document.is_index or document.capability not in _INDEX_LINK_RULES:
        return
    parts = [(it, known[it.uri]) for it in document.targets if it.uri in known]
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
        rule = "RI05" if document.capability is Capability.RESOURCE_LIST else "G08"
        yield at_root(
            _INDEX_LINK_RULES[document.capability] if rule == "G08" else rule, message, part
        )
    if document.capability.is_snapshot:
        yield from _judge_snapshot(document, target, part)
    else:
        yield from _judge_interval(document, target, part)


def _judge_snapshot(
    document: DocumentSummary, target: ListedTarget, part: DocumentSummary
) -> Iterator[RuleFinding]:
    if document.capability is not Capability.RESOURCE_LIST:
        return
    if target.at is not None and part.at is not None and target.at != part.at:
        yield at_target("RI04", f"at is not the {part.at:%FT%TZ} of the part", document, target)
    if document.at is not None and part.at is not None and part.at < document.at:
        yield at_target("RI04", "the part is older than the index", document, target)
    if document.completed and part.completed and part.completed > document.completed:
        yield at_target("RI04", "the part was completed after the index", document, target)


def _judge_interval(
    document: DocumentSummary, target: ListedTarget, part: DocumentSummary
) -> Iterator[RuleFinding]:
    if document.capability is not Capability.CHANGE_LIST:
        return
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
    for part, repeated in zip(parts, count_repeated([it.resources for it in parts]), strict=True):
        if repeated:
            message = f"{repeated} of its resources are in other parts of {document.uri} too"
            yield at_root("RI06", message, part)
