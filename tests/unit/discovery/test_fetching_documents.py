"""Documents on their way: whatever ends a fetch, no temporary file stays open."""

from collections.abc import Iterable
from io import BytesIO

import pytest

from resourcesync.discovery.document_fetcher import DocumentFetcher
from resourcesync.errors import ResourceMissingError, ResourceSyncError, StoppedError
from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse, Outcomes

URIS = [f"http://h.example/{name}.xml" for name in ("first", "second", "third")]


def _raise(_uri: str, error: ResourceSyncError) -> None:
    raise error


class HalfWay:
    """Asks for everything at a time, answers the first request, and is then cut short."""

    def __init__(self, error: ResourceSyncError, *, is_raised: bool) -> None:
        self.error = error
        self.is_raised = is_raised

    def fetch(self, requests: Iterable[FetchRequest]) -> Outcomes:
        asked = list(requests)
        for request in asked:
            request.sink.write(b"half")
        yield FetchResponse(request=asked[0], status=200, uri=asked[0].uri, headers={}, received=4)
        if self.is_raised:
            raise self.error
        yield FetchFailure(request=asked[1], error=self.error)  # type: ignore[arg-type]


@pytest.mark.parametrize("end", ["raised", "told", "wanted no more"])
def test_a_fetch_that_is_cut_short_closes_what_it_began(end: str) -> None:
    error: ResourceSyncError = StoppedError("stop")
    if end == "told":
        error = ResourceMissingError("404", uri=URIS[1], status=404)
    files: list[BytesIO] = []

    def scratch() -> BytesIO:
        files.append(BytesIO())
        return files[-1]

    fetcher = DocumentFetcher(HalfWay(error, is_raised=end != "told"), scratch)
    coming = fetcher.get_all(dict.fromkeys(URIS), _raise)
    first = next(coming)
    if end == "wanted no more":
        coming.close()
    else:
        with pytest.raises(type(error)):
            next(coming)

    assert [file.closed for file in files] == [False, True, True]
    assert first.stream.read() == b""  # it is the caller's
    first.stream.seek(0)
    assert first.stream.read() == b"half"
