"""The options of a validation, and what it reports besides findings."""

from dataclasses import dataclass
from typing import Final

from resourcesync.validator.findings import RuleFinding
from resourcesync.validator.rule import RuleProfile
from resourcesync.validator.rules import RULES
from resourcesync.validator.sample import SampleSize, Unreached
from resourcesync.validator.summaries import DocumentSummary

MOST_DOCUMENTS: Final = 10_000
"""Default for the most documents of one target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationOptions:
    """The options of a validation.

    Attributes:
        profile: The text of the standard.
        rules: The ids of the selected rules.
        live: True if all documents of a Source are checked, and not only the one at its address.
        sample: Number of resources to fetch; ``None`` for none.
        again: Seconds until Change Lists are read again and compared; ``None`` for never.
        most_documents: Most documents of one target.
        hub_secret: Secret shared with the hub whose messages are checked; ``None`` for none.
    """

    profile: RuleProfile = RuleProfile.RS_1_1
    rules: frozenset[str] = frozenset(RULES)
    live: bool = False
    sample: SampleSize | None = None
    again: float | None = None
    most_documents: int = MOST_DOCUMENTS
    hub_secret: bytes | None = None

    @property
    def is_whole_source(self) -> bool:
        """True if all documents of a Source are read, for any reason."""
        return self.live or self.sample is not None or self.again is not None


@dataclass(frozen=True, slots=True)
class Judged:
    """A document was read to its end, or as far as it could be."""

    summary: DocumentSummary
    place: str


@dataclass(frozen=True, slots=True)
class Sampled:
    """Resources were fetched, or the members of a package were read."""

    uri: str
    checked: int
    listed: int


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """Change Lists were read a second time and compared with the first."""

    uri: str
    lists: int


@dataclass(frozen=True, slots=True)
class CutShort:
    """A Source has more documents than the limit, or lists more than is stored.

    Attributes:
        uri: The Source.
        documents: Number of documents that were read.
        all_read: True if these are all, and only a part of their entries was not compared.
    """

    uri: str
    documents: int
    all_read: bool = False


@dataclass(frozen=True, slots=True)
class StandaloneDocument:
    """A document was checked by itself, though it leads to others."""

    uri: str
    others: int


@dataclass(frozen=True, slots=True)
class Unopened:
    """Dumps list packages that were not opened, so their content is unknown.

    Attributes:
        uri: The target.
        packages: Number of packages.
        is_local: True if they should be on this machine, and are not.
    """

    uri: str
    packages: int
    is_local: bool


@dataclass(frozen=True, slots=True)
class Heard:
    """A message of a hub was read, as it was recorded.

    Attributes:
        uri: The file.
        kind: ``notification`` or ``verification``.
    """

    uri: str
    kind: str


ValidationEvent = (
    RuleFinding
    | Judged
    | Sampled
    | ReadAgain
    | CutShort
    | StandaloneDocument
    | Unopened
    | Heard
    | Unreached
)
