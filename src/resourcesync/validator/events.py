"""The options of a validation, and what it reports besides findings."""

from typing import Final

import msgspec

from resourcesync.validator.rule import RULES, AppliedRules, RuleFinding, RuleProfile
from resourcesync.validator.sample import SampleSize, Unreached
from resourcesync.validator.summaries import DocumentSummary

MOST_DOCUMENTS: Final = 10_000
"""Default for the most documents of one target."""


class ValidationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a validation.

    Attributes:
        profile: The text of the standard.
        rules: The ids of the selected rules.
        live: True if all documents of a Source are checked, and not only the one at its address.
        sample: Number of resources to fetch; ``None`` for none.
        most_documents: Most documents of one target.
    """

    profile: RuleProfile = RuleProfile.RS_1_1
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
    """Resources were fetched, or the members of a package were read.

    Attributes:
        uri: The Source, or the package.
        checked: Number of those that were checked.
        listed: Number of those that are listed.
        is_packed: They are members of a package; lists may have the same resources.
    """

    uri: str
    checked: int
    listed: int
    is_packed: bool = False


class CutShort(msgspec.Struct, frozen=True):
    """A Source has more documents than the limit, or lists more than is stored.

    Attributes:
        uri: The Source.
        documents: Number of documents that were read.
        all_read: True if these are all, and only a part of their entries was not compared.
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

    Attributes:
        uri: The target.
        packages: Number of packages.
        is_local: True if they should be on this machine, and are not.
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
