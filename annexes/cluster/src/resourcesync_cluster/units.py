"""Units of a pull: requests for a worker, and what it staged for each."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from resourcesync.errors import SourceError, StorageError
from resourcesync.model.digests import Digest
from resourcesync.ports import FetchRequest, Proof


class WantedResource(NamedTuple):
    """A request as a worker is given it; the fields are those of ``FetchRequest``.

    Attributes:
        algorithms: Digests to compute of the bytes.
    """

    uri: str
    algorithms: tuple[str, ...]
    etag: str
    last_modified: str
    limit: int | None
    uncached: bool
    proof: Proof
    fields: tuple[tuple[str, str], ...]


class FetchUnit(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that one worker carries out.

    Attributes:
        name: A name that no other unit of the run has.
        host: The host; of several hosts, that of most requests.
        wanted: The requests.
        site: A worker's way to the Source and to the mirror; opaque to this package.
    """

    name: str
    host: str
    wanted: tuple[WantedResource, ...]
    site: Any


class FetchedResource(NamedTuple):
    """The end of one request, as a worker reports it.

    Attributes:
        error: Why it failed; ``None`` if it did not.
        status: 200 or 304.
        uri: Address of the answer, after redirects.
        headers: The answer's fields.
        tries: Requests that it took.
        place: Where the bytes are staged; empty for none.
        length: Number of bytes.
        digests: Their digests.
    """

    error: SourceError | StorageError | None = None
    status: int = 0
    uri: str = ""
    headers: Mapping[str, str] = {}
    tries: int = 1
    place: str = ""
    length: int = 0
    digests: tuple[Digest, ...] = ()


class UnitResult(NamedTuple):
    """The ends of all requests of a unit, in their order, and its network traffic."""

    fetched: tuple[FetchedResource, ...]
    requests: int
    received: int


def wanted_by(request: FetchRequest, algorithms: tuple[str, ...]) -> WantedResource:
    """Return a request as a worker is given it."""
    return WantedResource(
        uri=request.uri,
        algorithms=algorithms,
        etag=request.etag,
        last_modified=request.last_modified,
        limit=request.limit,
        uncached=request.uncached,
        proof=request.proof,
        fields=request.fields,
    )
