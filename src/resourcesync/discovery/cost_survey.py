"""Inputs of the cost calculator, as far as a Source's documents show them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from resourcesync.discovery.cost import DAY, CostInputs
from resourcesync.discovery.tree import DocumentReading, DocumentSurvey, PartsTotal, SourceNode
from resourcesync.model.vocabulary import Capability

_SHORTEST_HISTORY: Final = 60.0
"""Seconds of changes from which a number of changes a day follows."""
_INPUTS: Final = frozenset(CostInputs.__struct_fields__)


class CostSurvey:
    """The documents of a Source, read for their costs.

    Lists of several sets are counted together.
    """

    def __init__(self) -> None:
        self._listed = DocumentSurvey()
        self._changes = 0
        self._since: datetime | None = None
        self._until: datetime | None = None
        self._spans: list[float] = []
        self._has_dump = False
        self._has_list = False

    def add(self, step: SourceNode | PartsTotal) -> None:
        """Count one step of the walk through the documents."""
        reading = None if isinstance(step, PartsTotal) else step.reading
        if reading is None:
            return
        kind = reading.header.capability
        if kind is Capability.RESOURCE_DUMP:
            self._has_dump = True
        elif reading.header.is_index:
            return
        elif kind in {None, Capability.RESOURCE_LIST}:
            self._has_list = True
            self._listed.add(reading.survey)
        elif kind is Capability.CHANGE_LIST:
            self._add_changes(reading)

    def _add_changes(self, reading: DocumentReading) -> None:
        header, newest = reading.header, reading.survey.newest
        self._changes += reading.survey.entries
        if header.from_ is not None:
            self._since = min(self._since or header.from_, header.from_)
            if header.until is not None:
                self._spans.append((header.until - header.from_).total_seconds())
        for moment in (header.until, newest):
            if moment is not None:
                self._until = max(self._until or moment, moment)

    def published(self) -> dict[str, Any]:
        """Return the inputs that the documents show, by their names."""
        found: dict[str, Any] = {"dumps": self._has_dump}
        if self._has_list:
            found["resources"] = self._listed.entries
        if self._listed.sized:
            found["mean_size"] = self._listed.size / self._listed.sized
        if self._listed.entries:
            found["uri_length"] = self._listed.uri_bytes / self._listed.entries
        if self._since is not None and self._until is not None:
            seconds = (self._until - self._since).total_seconds()
            if self._changes and seconds >= _SHORTEST_HISTORY:
                found["changes_per_day"] = self._changes * DAY / seconds
        if spans := [span for span in self._spans if span > 0]:
            found["rotate"] = sum(spans) / len(spans)
        return found

    def inputs(self, given: Mapping[str, Any]) -> tuple[CostInputs, frozenset[str]]:
        """Return the inputs, and the names of those that are neither published nor given.

        Args:
            given: Inputs that replace those of the documents, by their names.

        Raises:
            ValueError: The number of resources is unknown, or a value has no meaning.
        """
        known = {**self.published(), **given}
        if "resources" not in known:
            raise ValueError("the number of resources is unknown")
        return CostInputs(**known), _INPUTS - known.keys()
