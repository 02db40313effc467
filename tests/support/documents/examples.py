"""Example documents of every kind and version, in ``tests/data/examples``.

They are the documents of one museum, and each has the structure of an example of the specification,
with what that example leaves out. Where the specification's own examples are present, in
``shared/corpus`` beside this repository, the tests that ask for all `examples` read them too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from resourcesync.model.settings import RuleProfile
from resourcesync.model.vocabulary import Dialect
from tests.support.documents.text import Told, tell

OURS: Final = Path(__file__).parents[2] / "data" / "examples"
SPECIFICATION: Final = Path(__file__).parents[3].parent / "shared" / "corpus"
MUSEUM: Final = "https://museum.example.org"

DIALECTS: Final = {
    "1.1": Dialect.V1_1,
    "1.0": Dialect.V1_0,
    "0.9": Dialect.V0_9,
    "archives": Dialect.V1_0,
}
PROFILES: Final[Mapping[str, RuleProfile]] = {
    "1.1": "rs-1.1",
    "1.0": "rs-1.0",
    "0.9": "rs-0.9",
    "archives": "rs-1.0",
}
"""What the validator judges them by."""

FOLDERS: Final = {
    "1.1": "spec-1.1",
    "1.0": "spec-1.0",
    "0.9": "spec-0.9",
    "archives": "archives-1.0",
}
_SINCE_1_0: Final = {
    1: "bare-resource-list",
    2: "hashed-resource-list",
    3: "closed-change-list",
    4: "bare-resource-dump",
    5: "bare-dump-manifest",
    6: "small-capability-list",
    7: "small-description",
    8: "bare-resource-list-index",
    12: "description",
    13: "capability-list",
    14: "resource-list",
    15: "resource-list-index",
    16: "resource-list-part",
    17: "resource-dump",
    18: "resource-dump-manifest",
    19: "open-change-list",
    20: "change-list-index",
    21: "change-list-part",
    22: "change-dump",
    23: "change-dump-manifest",
    24: "link-duplicate",
    25: "link-alternate",
    26: "link-canonical",
    27: "link-patch",
    28: "link-describedby",
    29: "link-memento",
    30: "link-collection",
    31: "aggregated-original",
    32: "aggregated-first",
    33: "aggregated-again",
}
_BY_NUMBER: Final = {str(number): name for number, name in _SINCE_1_0.items()}
_NAMES: Final = {
    "1.1": _BY_NUMBER,
    "1.0": _BY_NUMBER,
    "0.9": {
        "2_1": "bare-resource-list",
        "2_2": "hashed-resource-list",
        "2_3": "closed-change-list",
        "2_4": "bare-resource-dump",
        "2_5": "bare-dump-manifest",
        "2_6": "small-capability-list",
        "2_7": "small-description",
        "2_8": "bare-resource-list-index",
        "4_1": "resource-list",
        "4_2": "resource-list-index",
        "4_3": "resource-list-part",
        "5_1": "resource-dump",
        "5_2": "resource-dump-manifest",
        "6_1": "change-list",
        "7_1": "change-dump",
        "7_2": "change-dump-manifest",
        "8_1": "link-duplicate",
        "8_2": "link-alternate",
        "8_3": "link-canonical",
        "8_4": "link-patch",
        "8_5": "link-describedby",
        "8_6": "link-memento",
        "8_7": "link-collection",
        "8_8": "aggregated-original",
        "8_9": "aggregated-first",
        "8_10": "aggregated-again",
        "9_1": "description",
        "9_2": "capability-list",
    },
    "archives": {
        "2_1": "capability-list",
        "2_2": "change-list-with-archive",
        "3_1": "resource-list-archive",
        "3_2": "resource-list-archive-index",
        "4_1": "resource-dump-archive",
        "5_1": "change-list-archive",
        "6_1": "change-dump-archive",
    },
}


@dataclass(frozen=True)
class Example:
    version: str
    name: str
    path: Path

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    def tell(self) -> Told:
        return tell(self.path.read_bytes())


def folders(version: str) -> list[Path]:
    found = [OURS / version, SPECIFICATION / FOLDERS[version]]
    return [folder for folder in found if folder.is_dir()]


def name_of(version: str, path: Path) -> str:
    return _NAMES[version].get(path.stem.partition("_ex_")[2], path.stem)


def examples(*versions: str) -> list[Example]:
    return [
        Example(version, name_of(version, path), path)
        for version in versions or DIALECTS
        for folder in folders(version)
        for path in sorted(folder.glob("*.xml"))
    ]


def ours(version: str, name: str) -> Told:
    return tell((OURS / version / f"{name}.xml").read_bytes())
