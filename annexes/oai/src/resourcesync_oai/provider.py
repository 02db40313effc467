"""An OAI-PMH provider: requests, and their replies as records or errors."""

import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, BinaryIO, Final, cast
from urllib.parse import quote, urlsplit

import msgspec

from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    DocumentError,
    SourceError,
    SourceUnavailableError,
    StorageError,
    TruncatedDocumentError,
    quoted,
)
from resourcesync.ports import Clock, Fetcher, FetchFailure, FetchRequest, Purpose
from resourcesync_oai.documents.records import (
    ListToken,
    MetadataFormat,
    OaiFault,
    OaiRecord,
    ProviderIdentity,
)
from resourcesync_oai.documents.responses import OaiResponse
from resourcesync_oai.options import OaiOptions

_log = logging.getLogger(__name__)

MOST_WAIT: Final = 3_600.0
"""Seconds: the longest ``Retry-After`` that is obeyed."""
_MOST_WAITS: Final = 5
_IN_MEMORY: Final = 1 << 20
_MOST_PAGES: Final = 10_000
EMPTY_ANSWERS: Final = frozenset({"noRecordsMatch", "noSetHierarchy", "noMetadataFormats"})
"""Errors of OAI-PMH that mean an empty result."""
BAD_TOKEN: Final = "badResumptionToken"  # noqa: S105 - a word of OAI-PMH
BAD_ARGUMENT: Final = "badArgument"
RETAINED: Final = ("kept", "what was published before")
_OPEN_HINT: Final = "open that address in a browser; if it fails too, report it to the repository"
_SHORTER: Final = (
    "run it again; if its tokens always expire, read shorter lists by the option window"
)
_AGAIN: Final = "try again: it resumes there"


def sent_evidence(uri: str) -> tuple[str, str]:
    """Return the request, as evidence."""
    return "sent", f"GET {uri}"[:500]


class ProviderError(BadResponseError):
    """The provider answered with an ``error`` of OAI-PMH.

    Attributes:
        fault: The error.
    """

    default_code = "oai-error"

    def __init__(self, fault: OaiFault, uri: str) -> None:
        said = f"{fault.code}: {fault.text}" if fault.text else fault.code
        is_expired = fault.code == BAD_TOKEN
        super().__init__(
            f"the provider refuses with {fault.code or 'an error'}",
            uri=uri,
            status=200,
            evidence=(("got", said[:500]), sent_evidence(uri), RETAINED),
            hint=f"{_SHORTER}: --with window=30d" if is_expired else _OPEN_HINT,
        )
        self.fault = fault


class _AnswerSink:
    """A sink into memory, or into an unlinked file for a long body."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream

    def write(self, chunk: bytes) -> None:
        try:
            self.stream.write(chunk)
        except OSError as error:
            raise StorageError(
                f"cannot store a response: {error.strerror}",
                evidence=(RETAINED,),
                hint="free space for temporary files, then try again",
            ) from error

    def restart(self) -> None:
        self.stream.seek(0)
        self.stream.truncate()


class ProviderReply:
    """The reply of a provider."""

    def __init__(self, answer: OaiResponse, uri: str) -> None:
        self._answer, self._uri = answer, uri

    def records(self, *, goes_on: bool = False) -> Iterator[OaiRecord]:
        """Yield the records; other errors are raised after the last one."""
        answer = self._answer
        try:
            yield from answer.records()
        except TruncatedDocumentError as error:
            raise SourceUnavailableError(
                error.message,
                uri=self._uri,
                status=200,
                evidence=(sent_evidence(self._uri), RETAINED),
                hint=_AGAIN,
                code="truncated",
            ) from error
        except DocumentError as error:
            place = (("line", str(error.line)),) if error.line else ()
            raise BadResponseError(
                error.message,
                uri=self._uri,
                status=200,
                evidence=(*error.evidence, *place, sent_evidence(self._uri), RETAINED),
                hint=error.hint or _OPEN_HINT,
                code=error.code,
            ) from error
        for fault in answer.faults:
            if fault.code not in EMPTY_ANSWERS:
                raise ProviderError(fault, self._uri)
            if goes_on:
                raise ProviderError(OaiFault(code=BAD_TOKEN, text=fault.code), self._uri)
        if not answer.verb and not answer.faults:
            raise BadResponseError(
                "the response is empty",
                uri=self._uri,
                status=200,
                evidence=(sent_evidence(self._uri), RETAINED),
                hint=_OPEN_HINT,
            )

    @property
    def token(self) -> ListToken | None:
        """The resumption token, after the last record; ``None`` at the end of the list."""
        return self._answer.token

    def read(self) -> OaiResponse:
        """Return the reply to a verb without records, read to its end."""
        for _ in self.records():
            pass
        return self._answer


class Endpoint:
    """A provider, by its base URL."""

    def __init__(self, address: str, fetcher: Fetcher, clock: Clock) -> None:
        self.address = address
        self._fetcher, self._clock = fetcher, clock
        self.read = {"record": 0, "request": 0}

    def identify(self) -> ProviderIdentity:
        """Return the provider's self-description."""
        with self.answer({"verb": "Identify"}) as answer:
            return answer.read().identity

    def formats(self) -> tuple[MetadataFormat, ...]:
        """Return its metadata formats."""
        with self.answer({"verb": "ListMetadataFormats"}) as answer:
            return answer.read().formats

    def sets(self) -> Iterator[str]:
        """Yield ``setSpec`` of each set; nothing if it has no sets."""
        arguments = {"verb": "ListSets"}
        for _ in range(_MOST_PAGES):
            with self.answer(arguments) as answer:
                read = answer.read()
            yield from read.sets
            token = read.token
            if token is None or token.value == arguments.get("resumptionToken"):
                return
            arguments = {"verb": "ListSets", "resumptionToken": token.value}

    @contextmanager
    def answer(self, arguments: Mapping[str, str]) -> Iterator["ProviderReply"]:
        """Send a request; the reply is read in the block."""
        uri = self._uri(arguments)
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as stream:
            self._fetch(uri, stream)
            stream.seek(0)
            yield ProviderReply(OaiResponse(cast("BinaryIO", stream), uri=uri), uri)

    def _uri(self, arguments: Mapping[str, str]) -> str:
        query = "&".join(f"{key}={quote(value, safe='')}" for key, value in arguments.items())
        return f"{self.address}{'&' if '?' in self.address else '?'}{query}"

    def _fetch(self, uri: str, stream: IO[bytes]) -> None:
        sink = _AnswerSink(stream)
        waits = 0
        while True:
            request = FetchRequest(uri=uri, sink=sink, purpose=Purpose.DOCUMENT, is_explicit=True)
            (outcome,) = self._fetcher.fetch([request])
            self.read["request"] += 1
            if not isinstance(outcome, FetchFailure):
                return
            seconds = _requested_wait(outcome.error)
            if seconds is None or waits == _MOST_WAITS:
                raise outcome.error
            waits += 1
            _log.info("the provider asks to retry in %d s", seconds)
            self._clock.sleep(seconds)
            sink.restart()


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """An identified provider.

    Attributes:
        identity: Its self-description.
        published: The namespaces (or schemas) of the published formats, by prefix.
        prefixes: All formats to list: these, and those that files are found in.
    """

    endpoint: Endpoint
    identity: ProviderIdentity
    published: Mapping[str, str]
    prefixes: tuple[str, ...]

    @property
    def namespace(self) -> str:
        """The namespace in its identifiers after ``oai:``: the announced one, or its host."""
        return self.identity.namespace or urlsplit(self.endpoint.address).hostname or ""


def open_provider(endpoint: Endpoint, choice: OaiOptions, *, has_sets: bool) -> Provider:
    """Identify a provider, and check that it has the formats and sets to publish."""
    identity = endpoint.identify()
    if not (identity.name or identity.earliest or identity.granularity):
        raise BadResponseError(
            "the provider does not identify itself",
            uri=endpoint.address,
            evidence=(sent_evidence(f"{endpoint.address}: Identify"), RETAINED),
            hint="give the base URL of its OAI-PMH, such as oai:https://HOST/oai/request",
        )
    formats = {
        metadata_format.prefix: metadata_format.namespace or metadata_format.schema
        for metadata_format in endpoint.formats()
    }
    prefixes = choice.prefixes or tuple(
        prefix for prefix in sorted(formats) if prefix not in choice.files_from
    )
    for prefix in (*prefixes, *choice.files_from):
        if prefix not in formats:
            raise ConfigurationError(
                f"the repository has no metadata in the format {prefix}",
                evidence=(
                    ("it has", ", ".join(sorted(formats))[:500]),
                    ("asked", f"{endpoint.address}: ListMetadataFormats"),
                ),
                hint="choose formats that it has by the option prefixes: "
                f"--with {quoted('prefixes=' + ','.join(sorted(formats)[:3]), 'KEY=VALUE')}",
            )
    _check_sets(endpoint, () if has_sets else choice.sets)
    return Provider(
        endpoint=endpoint,
        identity=identity,
        published={prefix: formats[prefix] for prefix in prefixes},
        prefixes=tuple(dict.fromkeys((*prefixes, *choice.files_from))),
    )


def _check_sets(endpoint: Endpoint, wanted: tuple[str, ...]) -> None:
    lacking = set(wanted)
    if not lacking:
        return
    for spec in endpoint.sets():
        lacking.discard(spec)
        if not lacking:
            return
    raise ConfigurationError(
        f"the repository has no set {min(lacking)}",
        evidence=(("asked", f"{endpoint.address}: ListSets"),),
        hint="write setSpec as in ListSets by the option sets: --with sets=col_1,col_2",
    )


def _requested_wait(error: SourceError | StorageError) -> float | None:
    """Return the seconds that a provider asks to wait; ``None`` for none, or too many."""
    if not isinstance(error, SourceUnavailableError) or error.retry_after is None:
        return None
    return error.retry_after if error.retry_after <= MOST_WAIT else None
