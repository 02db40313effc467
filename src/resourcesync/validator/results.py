"""The options of a validation, and what it reports besides findings."""

from typing import Final

import msgspec

from resourcesync.model.settings import RuleProfile
from resourcesync.validator.rule import RULES, AppliedRules, RuleFinding
from resourcesync.validator.sample import SampleSize, Unreached
from resourcesync.validator.summaries import DocumentSummary

MOST_DOCUMENTS: Final = 10_000
"""Default for the most documents of one target."""


class ValidationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a validation: ``rules`` are the ids of the selected ones.

    A ``live`` one reads all documents of a Source; one without ``sample`` fetches no resource.
    """

    profile: RuleProfile = "rs-1.1"
    rules: frozenset[str] = frozenset(RULES)
    live: bool = False
    sample: SampleSize | None = None
    most_documents: int = MOST_DOCUMENTS

    @property
    def is_whole_source(self) -> bool:
        """True if all documents of a Source are read, for any reason."""
        return self.live or self.sample is not None


class Judged(msgspec.Struct, frozen=True):
    """A document was read to its end, or as far as it could be."""

    summary: DocumentSummary
    place: str


class Sampled(msgspec.Struct, frozen=True):
    """So many of the resources of a Source were fetched, or members of a package were read."""

    uri: str
    checked: int
    listed: int
    is_packed: bool = False


class CutShort(msgspec.Struct, frozen=True):
    """A Source has more documents than the limit, or lists more than is stored.

    If all of its documents were read, only a part of their entries was not compared.
    """

    uri: str
    documents: int
    all_read: bool = False


class StandaloneDocument(msgspec.Struct, frozen=True):
    """A document was checked by itself, though it leads to others."""

    uri: str
    others: int


class Unopened(msgspec.Struct, frozen=True):
    """Dumps list packages that were not opened, so their content is unknown.

    Local ones should be on this machine, and are not.
    """

    uri: str
    packages: int
    is_local: bool


ValidationEvent = (
    RuleFinding
    | AppliedRules
    | Judged
    | Sampled
    | CutShort
    | StandaloneDocument
    | Unopened
    | Unreached
)
