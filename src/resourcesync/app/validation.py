"""Validation of documents, packages and Sources by the rules of the standard."""

import io
import os
from collections.abc import Iterator
from typing import BinaryIO, Final, Literal

from resourcesync.app import machine
from resourcesync.app.checks.target_access import new_validator
from resourcesync.errors import ResourceSyncError
from resourcesync.settings.mirror import Network
from resourcesync.settings.schema import convert_argument
from resourcesync.validator.events import ValidationOptions
from resourcesync.validator.examination import validate_document
from resourcesync.validator.rule import RuleFinding, RuleProfile, by_place
from resourcesync.validator.sample import SampleSize, Unreached
from resourcesync.validator.validation import Validator

_BLOCK: Final = 65_536


def validate(
    target: str | os.PathLike[str] | bytes | BinaryIO,
    *,
    profile: Literal["rs-1.1", "rs-1.0", "sitemap"] = "rs-1.1",
    live: bool = False,
    sample: int | None = None,
    network: Network | None = None,
) -> Iterator[RuleFinding]:
    """Yield the faults of a document, a package, a published folder or a Source.

    Broken and hostile bytes are findings, not errors. What cannot be fetched raises an error after
    the last finding: what was not checked is never reported as valid.

    Args:
        target: A document's bytes, or an open file that has them; a path; or an address.
        profile: The text of the standard to check against.
        live: Check all documents of the Source at an address, not only the one there.
        sample: Number of listed resources of a Source to fetch and compare.
        network: Settings for requests to a Source.

    Raises:
        ConfigurationError: There is no such file, or an argument cannot work.
        SourceError: Nothing was found at the address, or something cannot be fetched.
        StorageError: A file cannot be read.

    Example:
        >>> [finding.rule.code for finding in validate(b"<html></html>")]
        ['RS102']
    """
    chosen: RuleProfile = convert_argument("profile", profile, RuleProfile)
    if isinstance(target, str | os.PathLike):
        size = None if sample is None else SampleSize(count=sample)
        judgement = ValidationOptions(profile=chosen, live=live, sample=size)
        cancel = machine.new_cancel_token()
        judge = new_validator(judgement, network=network or Network(), cancel=cancel)
        return _validate_target(judge, os.fspath(target))
    return _validate_bytes(target, chosen)


def _validate_target(judge: Validator, target: str) -> Iterator[RuleFinding]:
    unreached: ResourceSyncError | None = None
    for event in judge.judge(target):
        if isinstance(event, RuleFinding):
            yield event
        elif isinstance(event, Unreached):
            unreached = unreached or event.error
    if unreached is not None:
        raise unreached


def _validate_bytes(document: bytes | BinaryIO, profile: RuleProfile) -> Iterator[RuleFinding]:
    stream = io.BytesIO(document) if isinstance(document, bytes) else document
    chunks = iter(lambda: stream.read(_BLOCK), b"")
    findings = validate_document(chunks, uri="", profile=profile)
    yield from by_place(finding for finding in findings if profile in finding.rule.profiles)
