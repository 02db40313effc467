"""A program that fills an index as seed 001 says: not ours, with names and dates of its own."""

import hashlib
import json
import urllib.request
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from resourcesync_elasticsearch.documents import CHANGE_FIELDS, RESOURCE_FIELDS

PREFIX = "https://data.example.org/res/"
ROOT = "/srv/dit/data"
Document = dict[str, Any]


def ask(url: str, method: str = "GET", body: object = None) -> Any:
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, method=method)
    request.add_header(
        "Content-Type", "application/x-ndjson" if isinstance(body, bytes) else "application/json"
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


class DitIndex:
    """An index with two kinds of documents, written by the harvester of the seed."""

    def __init__(self, url: str, *, resource_set: str = "pdf") -> None:
        self.url = url
        self.name = f"omtd-{uuid.uuid4().hex[:12]}"
        self.resource_set = resource_set
        self.known: dict[str, str] = {}
        self._lines: list[Document] = []

    @property
    def resources(self) -> str:
        return f"{self.name}-resource"

    @property
    def changes(self) -> str:
        return f"{self.name}-change"

    def make(self, **settings: object) -> None:
        mapped = {self.resources: RESOURCE_FIELDS, self.changes: CHANGE_FIELDS}
        for index, fields in mapped.items():
            self.make_index(index, fields, **settings)

    def make_index(self, index: str, fields: object, **settings: object) -> None:
        body = {"settings": {"number_of_replicas": 0, **settings}}
        ask(f"{self.url}/{index}", "PUT", {**body, "mappings": {"properties": fields}})

    def drop(self) -> None:
        ask(f"{self.url}/{self.resources}", "DELETE")
        ask(f"{self.url}/{self.changes}", "DELETE")

    def put(self, location: Document, content: bytes, **more: object) -> None:
        """Post the two documents of a file that is new or was renewed; `refresh` sends them."""
        key = json.dumps(location)
        kind = "updated" if key in self.known else "created"
        name = self.known.setdefault(key, uuid.uuid4().hex)
        document = {
            "location": location,
            "length": len(content),
            "md5": hashlib.md5(content).hexdigest(),
            "lastmod": _now(),
            **more,
        }
        self.write(
            [
                ({"index": {"_index": self.resources, "_id": name}}, self._common()),
                (None, document),
                *self._log(location, kind, lastmod=document["lastmod"]),
            ]
        )

    def remove(self, location: Document) -> None:
        name = self.known.pop(json.dumps(location))
        self.write(
            [
                ({"delete": {"_index": self.resources, "_id": name}}, None),
                *self._log(location, "deleted"),
            ]
        )

    def write(self, parts: Sequence[tuple[Document | None, Document | None]]) -> None:
        """Note actions with their documents; a document without one goes with the last."""
        for action, document in parts:
            if action is not None:
                self._lines.append(action)
                if document is not None:
                    self._lines.append(dict(document))
            elif document is not None:
                self._lines[-1].update(document)

    def refresh(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            body = "".join(json.dumps(line) + "\n" for line in lines).encode()
            answer = ask(f"{self.url}/_bulk", "POST", body)
            assert not answer["errors"], answer
        ask(f"{self.url}/{self.name}*/_refresh", "POST")

    def log(self, location: Document, kind: str, **more: object) -> None:
        self.write(self._log(location, kind, **more))

    def _log(
        self, location: Document, kind: str, **more: object
    ) -> list[tuple[Document | None, Document | None]]:
        told = {"location": location, "change": kind, "datetime": _now(), **more}
        action = {"index": {"_index": self.changes, "_id": uuid.uuid4().hex}}
        return [(action, self._common()), (None, told)]

    def _common(self) -> Document:
        return {"resource_set": self.resource_set, "timestamp": _now()}


def rel_path(name: str) -> Document:
    return {"type": "rel_path", "value": name}


def abs_path(name: str) -> Document:
    return {"type": "abs_path", "value": f"{ROOT}/{name}"}


def url(uri: str) -> Document:
    return {"type": "url", "value": uri}


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
