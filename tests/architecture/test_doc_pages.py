"""The pages are short, their links lead to headings that exist, and their pictures have words."""

import re
from collections import Counter
from pathlib import Path

from docs.concept_drawings import PICTURES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
STATIC = DOCS / "_static"
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts]
GENERATED = re.compile(r"<!-- generated: ([\w-]+) -->.*?<!-- end: \1 -->", re.DOTALL)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)

MOST_WORDS = 1_200
MOST_PAGES = 90
MOST_WORDS_OF_ALL = 80_000


def name(path: Path) -> str:
    return path.relative_to(DOCS).as_posix()


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page: those of its headings, as GitHub makes them, and named ones."""
    text = FENCED.sub("", path.read_text("utf-8"))
    found: Counter[str] = Counter()
    slugs = set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        slugs.add(f"{slug}-{found[slug]}" if found[slug] else slug)
        found[slug] += 1
    return slugs


ANCHORS = {path.resolve(): anchors(path) for path in [*PAGES, *ROOT.glob("*.md")]}


def test_a_page_can_be_read_in_five_minutes() -> None:
    words = {
        name(path): len(PICTURE.sub("", GENERATED.sub("", path.read_text("utf-8"))).split())
        for path in PAGES
        if path.parent.name != "adr"
    }

    assert [page for page, count in words.items() if count > MOST_WORDS] == []


def test_the_pages_of_the_site_are_few_and_short() -> None:
    pages = [path for path in PAGES if path.parent.name != "adr"]

    assert len(pages) <= MOST_PAGES
    assert sum(len(path.read_text("utf-8").split()) for path in pages) <= MOST_WORDS_OF_ALL


def test_every_link_to_a_heading_leads_to_one() -> None:
    wrong = []
    for path in ANCHORS:
        text = FENCED.sub("", path.read_text("utf-8"))
        for page, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", text):
            target = (path.parent / page).resolve() if page else path
            if target in ANCHORS and anchor not in ANCHORS[target]:
                wrong.append(f"{path.name}: {page}#{anchor}")

    assert wrong == []


def test_every_picture_is_on_a_page_and_has_words_for_who_does_not_see_it() -> None:
    shown: dict[Path, list[str]] = {}
    for page in PAGES:
        for words, target in PICTURE.findall(page.read_text("utf-8")):
            shown.setdefault((page.parent / target).resolve(), []).append(words)

    for place in [*(DOCS / picture for picture in PICTURES), *STATIC.glob("*.png")]:
        assert min(map(len, shown[place])) > 100, place.name
        assert place.suffix == ".png" or "<title>" in place.read_text("utf-8"), place.name


def test_every_page_of_a_how_to_is_in_one_group_of_the_menu() -> None:
    front = (DOCS / "index.md").read_text("utf-8")
    menu = Counter(re.findall(r"^(how-to/[\w-]+)$", front, re.MULTILINE))

    assert menu == Counter(name(path)[:-3] for path in (DOCS / "how-to").glob("*.md"))


def test_two_hyphens_stay_two_hyphens() -> None:
    settings = (DOCS / "conf.py").read_text("utf-8")

    assert 'smartquotes_action = "qe"' in settings, "the option --json is no dash"
