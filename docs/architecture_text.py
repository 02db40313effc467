"""The pictures and tables of the page on architecture, from the code's own imports."""

import ast
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from docs.drawing import Picture, Point

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "resourcesync"

Imports = dict[str, set[str]]
"""For each package the others that it imports."""

# --- what the code says ------------------------------------------------------------------------


def layers() -> list[list[str]]:
    """Return the layers, the highest first, as ``pyproject.toml`` has them for import-linter."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (lines,) = (contract["layers"] for contract in contracts if contract["id"] == "layers")
    return [[name.strip(" ()") for name in line.split("|")] for line in lines]


def sizes() -> Counter[str]:
    """Return the number of modules of each package."""
    return Counter(package_of(path) for path in PACKAGE.rglob("*.py"))


def package_of(path: Path) -> str:
    """Return the package right below the root, or the module there, that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports() -> Imports:
    """Return which packages import which; an import for types alone counts."""
    known, found = set(sizes()), dict[str, set[str]]()
    for path in sorted(PACKAGE.rglob("*.py")):
        own = package_of(path)
        others = {name for name in imported(ast.parse(path.read_text("utf-8"))) if name in known}
        found.setdefault(own, set()).update(others - {own})
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the packages of ours that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        parts = [name.split(".") for name in names]
        yield from (part[1] for part in parts if part[0] == "resourcesync" and len(part) > 1)


def without_detours(found: Imports) -> list[tuple[str, str]]:
    """Return the imports that no chain of other imports implies."""
    return [
        (lower, upper)
        for lower, uppers in found.items()
        for upper in sorted(uppers)
        if not any(upper in reachable(found, other) for other in uppers if other != upper)
    ]


def reachable(found: Imports, start: str) -> set[str]:
    """Return all that a package imports, directly or through others."""
    seen, waiting = set[str](), [start]
    while waiting:
        for name in found.get(waiting.pop(), ()):
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return seen


# --- the layers --------------------------------------------------------------------------------

_WIDTH = 940
_BOX_WIDTH = 132
_BOX_HEIGHT = 42
_ROW = 84
_TOP = 20
_APART = 9
"""Pixels between two lines, and between a line and a box that it passes."""

Arrow = tuple[str, str]


def draw_layers() -> str:
    """Return the picture of the layers and the imports between them."""
    rows, count = layers(), sizes()
    height = 2 * _TOP + _ROW * (len(rows) - 1) + _BOX_HEIGHT
    picture = Picture(_WIDTH, height, "The packages in layers; each imports only from below")
    places = {
        name: (left, float(_TOP + _ROW * number))
        for number, row in enumerate(rows)
        for name, left in zip(row, _spread(len(row)), strict=True)
    }
    arrows = [arrow for arrow in without_detours(imports()) if set(arrow) <= set(places)]
    for points in _routes(arrows, places):
        picture.descent(points)
        picture.arrow_down(points[-1])
    for name, (left, top) in places.items():
        picture.box(left, top, _BOX_WIDTH, _BOX_HEIGHT)
        middle = left + _BOX_WIDTH / 2
        picture.text((middle, top + 19), name, "name", "middle")
        modules = f"{count[name]} modules" if count[name] > 1 else "1 module"
        picture.text((middle, top + 35), modules, "small", "middle")
    return picture.svg()


def _spread(count: int) -> list[float]:
    """Return the left edges of so many boxes in a row."""
    step = min(_BOX_WIDTH + 110, (_WIDTH - 40 - _BOX_WIDTH) / max(count - 1, 1))
    first = (_WIDTH - _BOX_WIDTH - step * (count - 1)) / 2
    return [first + step * number for number in range(count)]


def _routes(arrows: list[Arrow], places: dict[str, Point]) -> Iterator[list[Point]]:
    """Yield the points of each arrow; one that passes other rows runs beside their boxes."""
    columns = _columns(arrows, places)
    leaving = _ends(arrows, places, columns, 0)
    arriving = _ends(arrows, places, columns, 1)
    for arrow in arrows:
        start = (leaving[arrow], places[arrow[0]][1] + _BOX_HEIGHT)
        end = (arriving[arrow], places[arrow[1]][1])
        column = columns[arrow]
        if column is None:
            yield [start, end]
        else:
            gap = _ROW - _BOX_HEIGHT
            yield [start, (column, start[1] + gap), (column, end[1] - gap), end]


def _columns(arrows: list[Arrow], places: dict[str, Point]) -> dict[Arrow, float | None]:
    """Return where each arrow passes the rows between; ``None`` for one that passes none."""
    used: list[tuple[float, float, float]] = []
    columns: dict[Arrow, float | None] = {}
    for arrow in sorted(arrows, key=lambda arrow: (_height(arrow, places), arrow)):
        (left, top), (to, bottom) = places[arrow[0]], places[arrow[1]]
        if bottom - top <= _ROW:
            columns[arrow] = None
            continue
        passed = [x for x, y in places.values() if top < y < bottom]
        blocked = [(x - _APART, x + _BOX_WIDTH + _APART) for x in passed]
        blocked += [
            (x - _APART, x + _APART) for x, first, last in used if first < bottom and last > top
        ]
        ends = (left + _BOX_WIDTH / 2, to + _BOX_WIDTH / 2)
        free = [
            float(x)
            for x in range(_APART, _WIDTH - _APART)
            if not any(low < x < high for low, high in blocked)
        ]
        best = min(free, key=lambda x: (sum(abs(x - end) for end in ends), x), default=ends[0])
        used.append((best, top, bottom))
        columns[arrow] = best
    return columns


def _height(arrow: Arrow, places: dict[str, Point]) -> float:
    return places[arrow[1]][1] - places[arrow[0]][1]


def _ends(
    arrows: list[Arrow], places: dict[str, Point], columns: dict[Arrow, float | None], side: int
) -> dict[Arrow, float]:
    """Return where at the edge of a box each arrow begins (side 0) or ends (side 1)."""

    def direction(arrow: Arrow) -> tuple[float, Arrow]:
        column = columns[arrow]
        middle = places[arrow[1 - side]][0] + _BOX_WIDTH / 2
        return (middle if column is None else column), arrow

    found: dict[Arrow, float] = {}
    for name, (left, _) in places.items():
        here = sorted((arrow for arrow in arrows if arrow[side] == name), key=direction)
        for number, arrow in enumerate(here, 1):
            found[arrow] = round(left + _BOX_WIDTH * number / (len(here) + 1), 1)
    return found


# --- a pull, a publication ---------------------------------------------------------------------

Step = tuple[str, str]
"""A sentence, and the definition that does it."""

PULL: list[Step] = [
    ("A program calls pull", "app.mirror:Mirror.pull"),
    ("Lock the mirror; open its state, its files and HTTP", "app.mirror_opening:open_destination"),
    ("Load the checkpoint and the filters", "destination.destination:Destination.pull"),
    ("Find the Capability List and the lists", "discovery.resolver:discover"),
    ("Start a baseline; later runs read changes only", "destination.baseline:Baseline.run"),
    ("Fetch the Resource List", "destination.lists.resource_reader:ResourceListReader.read"),
    ("Parse its bytes into entries", "documents.reader:Document.batches"),
    (
        "Apply scope and filters; map each URI to a path",
        "destination.lists.selection:ResourceSelection.resource_rows",
    ),
    ("Sort the entries by URI, on disk", "destination.external_sort:ExternalSorter"),
    ("Read the changes since the list", "destination.changes.reader:ChangeListReader.read_since"),
    ("Compare the copies with the entries", "merge_join:compare"),
    ("Decide: fetch, delete, retain or up to date", "destination.planner:decide"),
    ("Request many resources at a time", "destination.transfers.transfer:ResourceTransfer.execute"),
    ("Send within the limits of each origin", "adapters.http:CurlFetcher.fetch"),
    ("Hash and store the bytes in a temporary file", "adapters.mirror.staging:StagedFile.write"),
    ("Check length and hash against the list", "destination.transfers.verification:verify_bytes"),
    (
        "Mark a batch as suspect before it is replaced",
        "destination.transfers.commit:CommitBatch.flush",
    ),
    (
        "Sync the files, rename, sync the folders",
        "adapters.mirror.installed_copies:FileTreeCopies.install",
    ),
    ("Record the copies in one transaction", "mirror_state.database:SqliteMirrorState.commit"),
    ("Move the checkpoint when all copies are recorded", "destination.sync_state:encode_notes"),
    ("Move deleted copies to the trash, within limits", "destination.deletion:delete_pending"),
    ("Record the run and report the mirror state", "destination.runs:MirrorRun.record"),
]

PUBLICATION: list[Step] = [
    ("A program calls publish", "app.publisher:Publisher.publish"),
    ("Lock the catalogue; open the originals", "app.publishing.trees:publish_tree"),
    ("Refuse a clock that cannot be right", "source.clock_guard:check_clock"),
    ("Begin one transaction of the catalogue", "source.scan_for_changes:scan"),
    ("List the files in URI order, without reading", "adapters.files.tree:FileTreeOriginals.scan"),
    ("Compare catalogue and files by fingerprint", "merge_join:compare"),
    ("Read and hash a file that differs", "adapters.files.tree:FileTreeOriginals.measure"),
    ("Record the changes, each at its own time", "catalogue.recording:CatalogueRecording.finish"),
    ("Compare the catalogue with the last plan", "source.publisher:ListPublisher.publish"),
    ("Assign new changes to Change Lists", "source.change_list:extend"),
    ("Record the plan before any document", "source.stored_plan:CatalogueNote.write"),
    ("Write the Change Lists, oldest first", "source.change_list:publish"),
    ("Write the Resource List, if it is due", "source.resource_list:publish_resource_list"),
    ("For each document: render the entries", "documents.writer:body"),
    ("Store it beside its place, sync it", "adapters.folder_documents:FolderDocuments.write"),
    ("Read it back; only then rename it", "source.read_back:ReadBackCheck"),
    ("Write Capability List and Source Description", "source.description:publish"),
    ("Record the documents that are public", "source.stored_plan:CatalogueNote.write"),
    ("Delete documents that are out of use for a day", "source.rotation:remove_orphans"),
    ("Notify hubs", "source.notifications:notify"),
]

_LANE = 46
_STEP = 46
_HEAD = 58
_TEXT_WIDTH = 440


def draw_steps(title: str, steps: list[Step]) -> str:
    """Return the picture of a run: a lane for each package, and a line from step to step."""
    order = [name for layer in layers() for name in layer]
    lanes = sorted({_lane(where) for _, where in steps}, key=order.index)
    height = _HEAD + _STEP * len(steps) + 8
    columns = {name: 20 + _LANE * (number + 0.5) for number, name in enumerate(lanes)}
    text = 20 + _LANE * len(lanes) + 14
    picture = Picture(text + _TEXT_WIDTH, height, title)
    for number, (name, x) in enumerate(columns.items()):
        top = 22 + 18 * (number % 2)  # in turn, since names are wider than lanes
        picture.text((x, top), name, "small", "middle")
        picture.line((x, top + 8), (x, height - 14), "lane")
    dots = [
        (columns[_lane(where)], _HEAD + _STEP * (number + 0.4))
        for number, (_, where) in enumerate(steps)
    ]
    picture.descent(dots, "path")
    for number, (dot, (sentence, where)) in enumerate(zip(dots, steps, strict=True), 1):
        picture.line((dot[0] + 10, dot[1]), (text - 8, dot[1]), "lane")
        picture.dot(dot, number)
        picture.text((text, dot[1] - 3), sentence)
        picture.text((text, dot[1] + 14), where, "code")
    return picture.svg()


def _lane(where: str) -> str:
    return where.partition(":")[0].partition(".")[0]


PICTURES: dict[str, Callable[[], str]] = {
    "explanation/layers.svg": draw_layers,
    "explanation/pull.svg": partial(draw_steps, "The steps of a pull", PULL),
    "explanation/publication.svg": partial(draw_steps, "The steps of a publication", PUBLICATION),
}
"""The pictures that ``docs/generate.py`` writes, by their paths below ``docs``."""
