"""Findings at places that a summary remembers."""

from resourcesync.validator.findings import RuleFinding
from resourcesync.validator.rules import RULES
from resourcesync.validator.summaries import (
    DocumentPlace,
    DocumentSummary,
    ListedResource,
    ListedTarget,
)


def at_root(rule: str, message: str, document: DocumentSummary) -> RuleFinding:
    """Return a finding about a document as a whole."""
    return at_place(rule, message, document.uri, document.place)


def at_target(
    rule: str, message: str, document: DocumentSummary, target: ListedTarget
) -> RuleFinding:
    """Return a finding about one document that a document lists."""
    return at_place(rule, message, document.uri, target.place)


def at_listed(rule: str, message: str, listed: ListedResource) -> RuleFinding:
    """Return a finding about one resource that a document lists."""
    return at_place(rule, message, listed.document, listed.place)


def at_place(rule: str, message: str, uri: str, place: DocumentPlace) -> RuleFinding:
    """Return a finding at a place of a document."""
    return RuleFinding(
        rule=RULES[rule],
        uri=uri,
        message=message,
        line=place.line,
        column=place.column,
        length=place.length if place.line else 0,
    )


def without_place(rule: str, message: str, uri: str) -> RuleFinding:
    """Return a finding about a resource, a package or a message as a whole."""
    return RuleFinding(rule=RULES[rule], uri=uri, message=message)
