"""A consistent view of an index, read page by page: a point in time, and ``search_after``."""

import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    ResourceSyncError,
    SourceUnavailableError,
)
from resourcesync_elasticsearch.client import (
    AnswerTooLargeError,
    RequestRefusedError,
    SearchServer,
    segment,
)
from resourcesync_elasticsearch.documents import Query

Hit = Mapping[str, Any]

PAGE: Final = 5_000
"""Documents in one response."""
_KEEP_ALIVE: Final = "5m"
_ORDERS: Final = ("_shard_doc", "_id")

_log = logging.getLogger(__name__)


class PointInTimeView:
    """A consistent view of an index at one moment."""

    def __init__(
        self, server: SearchServer, index: str, *, is_opensearch: bool, page: int = PAGE
    ) -> None:
        self._server = server
        self._index = index
        self._path = "_search/point_in_time" if is_opensearch else "_pit"
        self._id = "pit_id" if is_opensearch else "id"
        self._page = page
        self._order = _ORDERS[0]
        self.total = 0

    def hits(self, query: Query, **more: object) -> Generator[Hit]:
        """Yield every document that matches a query, in any order, each once.

        `total` is their number, known from the first on.
        """
        with self._opened() as first:
            name, after, found = first, None, 0
            while True:
                request = {"query": query, **more, "track_total_hits": after is None}
                hits, name = self._next_page(name, request, after)
                found += len(hits)
                yield from hits
                if not hits or found >= self.total:
                    break
                after = _last_sort(hits)
        if found != self.total:
            raise BadResponseError(
                f"{self._index} gave {found:,} of {self.total:,} documents",
                uri=self._server.address,
                evidence=(("kept", "what was recorded before"),),
                hint="run again",
                code="cut-short",
            )

    @contextmanager
    def _opened(self) -> Iterator[str]:
        try:
            answer = self._server.request(
                "POST", f"/{segment(self._index)}/{self._path}", query={"keep_alive": _KEEP_ALIVE}
            )
        except RequestRefusedError as error:
            raise ConfigurationError(
                f"{self._server.address} opens no point in time",
                evidence=error.evidence,
                hint="elasticsearch:… is for Elasticsearch 7.12 and later, opensearch:… for "
                "OpenSearch 2.4 and later",
                code="no-view",
            ) from error
        name = answer.get(self._id) if isinstance(answer, dict) else None
        if not isinstance(name, str):
            raise _malformed_answer(self._server, answer)
        try:
            yield name
        finally:
            self._close(name)

    def _close(self, name: str) -> None:
        """Close the view; the server otherwise drops it after a timeout."""
        if self._server.is_closed:  # the reader was abandoned, and is finalized only now
            return
        body = {self._id: [name] if self._id == "pit_id" else name}
        try:
            self._server.request("DELETE", f"/{self._path}", body)
        except ResourceSyncError as error:
            _log.info("a point in time was not closed: %s", error.message)

    def _next_page(
        self, name: str, request: Query, after: Sequence[object] | None
    ) -> tuple[list[Hit], str]:
        """Return the next documents, and the name of the view from now on."""
        while True:
            body = {
                **request,
                "size": self._page,
                "pit": {"id": name, "keep_alive": _KEEP_ALIVE},
                "sort": [{self._order: "asc"}],
            }
            if after is not None:
                body["search_after"] = after
            try:
                answer = self._server.request(
                    "POST", "/_search", body, query={"allow_partial_search_results": "false"}
                )
            except AnswerTooLargeError:
                if self._page == 1:
                    raise
                self._page = max(1, self._page // 8)
            except RequestRefusedError as error:
                if self._order == _ORDERS[-1] or self._order not in error.reason:
                    raise
                self._order = _ORDERS[-1]  # OpenSearch before 3.3
            else:
                return self._checked_page(answer, name, is_first=after is None)

    def _checked_page(self, answer: Any, name: str, *, is_first: bool) -> tuple[list[Hit], str]:
        check_complete(self._server, answer)
        hits = answer["hits"].get("hits")
        if not isinstance(hits, list) or not all(map(_is_document, hits)):
            raise _malformed_answer(self._server, answer)
        if is_first:
            self.total = total_of(self._server, answer)
        return hits, answer.get("pit_id") or name


def check_complete(server: SearchServer, answer: Any) -> None:
    """Refuse a search response that lacks shards, or is not complete."""
    shards = answer.get("_shards") if isinstance(answer, dict) else None
    if not isinstance(shards, dict) or not isinstance(answer.get("hits"), dict):
        raise _malformed_answer(server, answer)
    if shards.get("failed") or answer.get("timed_out") is not False:
        failed = f"{shards.get('failed')} of {shards.get('total')} shards failed"
        raise SourceUnavailableError(
            f"{server.address} returned incomplete search results",
            uri=server.address,
            evidence=(
                ("got", f"{failed}, timed out: {answer.get('timed_out')}"),
                ("kept", "what was recorded before"),
            ),
            hint="run again when the cluster is healthy",
            code="partial-search",
        )


def total_of(server: SearchServer, answer: Any) -> int:
    """Return the total number of documents that a search found."""
    total = answer["hits"].get("total")
    if not isinstance(total, dict) or total.get("relation") != "eq":
        raise _malformed_answer(server, answer)
    value = total.get("value")
    if type(value) is not int:
        raise _malformed_answer(server, answer)
    return value


def _is_document(hit: object) -> bool:
    """True if a hit has an id and fields: a mapping may disable ``_source``."""
    if not isinstance(hit, Mapping):
        return False
    return isinstance(hit.get("_id"), str) and isinstance(hit.get("_source"), Mapping)


def _last_sort(hits: Sequence[Hit]) -> Sequence[object]:
    found: Sequence[object] = hits[-1].get("sort") or ()
    return found


def _malformed_answer(server: SearchServer, answer: object) -> BadResponseError:
    return BadResponseError(
        f"{server.address} returned an unknown search response",
        uri=server.address,
        evidence=(("got", f"{answer!s:.300}"),),
    )
