"""Validation of documents, packages and Sources by the rules of the standard."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import random
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from resourcesync.adapters.offline_documents import LocalDocuments, find_documents
from resourcesync.adapters.system import SystemClock
from resourcesync.app import document_access
from resourcesync.app.fetchers import checked_network
from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.model.settings import RuleProfile
from resourcesync.ports import CancelToken
from resourcesync.settings.mirror import Network
from resourcesync.settings.schema import convert_argument
from resourcesync.validator.crawl import OpenedTarget, TargetAccess
from resourcesync.validator.examination import Examination
from resourcesync.validator.results import ValidationOptions
from resourcesync.validator.rule import RuleFinding, by_place
from resourcesync.validator.sample import SampleSize, Unreached
from resourcesync.validator.validation import Validator

_BLOCK: Final = 65_536


def validate(
    target: str | os.PathLike[str] | bytes | BinaryIO,
    *,
    profile: RuleProfile = "rs-1.1",
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
        cancel = CancelToken(SystemClock())
        judge = new_validator(judgement, network=checked_network(network), cancel=cancel)
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
    yield from by_place(Examination(chunks, uri="", profile=profile))


def new_validator(
    options: ValidationOptions, *, network: Network, cancel: CancelToken
) -> Validator:
    """Return a validator."""

    @contextmanager
    def open_target(target: str) -> Iterator[OpenedTarget]:
        with document_access.open_documents(target, network, cancel) as opened:
            documents, first, fetcher = opened
            if options.sample and fetcher is None:
                raise ConfigurationError(
                    f"{target} is on this machine, and a sample is fetched from a Source",
                    hint="validate its address, or ask for no sample",
                )
            is_same = (
                documents.is_same
                if isinstance(documents, LocalDocuments)
                else lambda _uri, _place: False
            )
            yield OpenedTarget(documents, first, is_same, fetcher)

    def is_folder(target: str) -> bool:
        return not document_access.is_web_address(target) and Path(target).is_dir()

    access = TargetAccess(
        open=open_target,
        is_folder=is_folder,
        documents_in=lambda target, most: (
            find_documents(Path(target), most) if is_folder(target) else []
        ),
        identity=lambda place: str(Path(place).resolve()),
        temporary_file=TemporaryFile,
        allowed_origins=network.allow_origins,
    )
    return Validator(options, access=access, chance=random)
