"""The pictures of the explanation pages: what a Source offers, pulls, push, deletion, a crash."""

from collections.abc import Callable, Sequence

from docs.drawing import Picture, Point

WIDTH = 740
_MIDDLE = WIDTH / 2


def _boxed(picture: Picture, box: tuple[float, float, float, float], *lines: str) -> None:
    """Draw a box with centred lines; the first is its name."""
    left, top, width, height = box
    picture.box(*box)
    base = top + height / 2 + 5 - 8.5 * (len(lines) - 1)
    for number, line in enumerate(lines):
        at = (left + width / 2, base + 17 * number)
        picture.text(at, line, "small" if number else "name", "middle")


# --- what a Source offers ----------------------------------------------------------------------

_OFFERS = (
    (("Resource List", "what is there"), "each resource:", "address, time, hash"),
    (("Resource Dump", "the same, packed"), "ZIP packages", "with a manifest"),
    (("Change List", "what changed"), "each change:", "kind, time, hash"),
    (("Change Dump", "the same, packed"), "ZIP packages", "with a manifest"),
    (("Notification", "news, pushed"), "a hub, WebSub", ""),
)


def draw_offers() -> str:
    """Draw the documents of a Source, from the one address that leads to all."""
    picture = Picture(WIDTH, 360, "The documents of a Source, and how each leads to the next")
    _boxed(picture, (220, 16, 300, 48), "Source Description", "/.well-known/resourcesync")
    _boxed(picture, (220, 100, 300, 48), "Capability List", "one for each set of resources")
    picture.line((_MIDDLE, 64), (_MIDDLE, 94))
    picture.arrow_down((_MIDDLE, 100))
    width, gap = 132.0, 12.0
    left = (WIDTH - 5 * width - 4 * gap) / 2
    for number, (names, *lines) in enumerate(_OFFERS):
        x = left + number * (width + gap)
        middle = x + width / 2
        picture.descent([(_MIDDLE, 148), (middle, 186)])
        picture.arrow_down((middle, 192))
        _boxed(picture, (x, 192, width, 52), *names)
        for row, line in enumerate(lines):
            picture.text((middle, 264 + 16 * row), line, "small", "middle")
    picture.line((left, 306), (WIDTH - left, 306), "lane")
    text = (
        "Every document is a sitemap with more attributes; a plain sitemap is read as a list, too."
    )
    picture.text((_MIDDLE, 334), text, "small", "middle")
    return picture.svg()


# --- baseline and incremental ------------------------------------------------------------------

_CHANGES = (200.0, 232.0, 262.0, 330.0, 372.0, 470.0, 520.0, 548.0, 640.0)
_PULLS = (
    (165.0, "baseline"),
    (295.0, "incremental"),
    (440.0, "incremental"),
    (600.0, "incremental"),
)


def draw_pulls() -> str:
    """Draw a baseline and what follows it on a line of time."""
    picture = Picture(WIDTH, 310, "A baseline, then incremental pulls, on a line of time")
    lanes = ((60, "Resource List"), (112, "Changes"), (150, "Change Lists"), (246, "Pulls"))
    for y, name in lanes:
        picture.text((16, y + 5), name, "name")
        picture.line((140, y), (WIDTH - 16, y), "lane")
    picture.box(142, 44, 46, 32)
    picture.text((165, 64), "at", "small", "middle")
    for left, right, words in (
        (165.0, 400.0, "from … until"),
        (400.0, 700.0, "from …, still open"),
    ):
        picture.box(left, 136, right - left, 28)
        picture.text(((left + right) / 2, 155), words, "small", "middle")
    for x in _CHANGES:
        picture.add(f'<circle class="tip" cx="{x:g}" cy="112" r="5"/>')
    for number, (x, kind) in enumerate(_PULLS, 1):
        picture.arrow((x, 164 if number > 1 else 76), (x, 234))
        picture.dot((x, 246), number)
        picture.text((x, 276), kind, "small", "middle")
        first = "reads the Resource List" if number == 1 else "reads the changes"
        picture.text((x, 293), first, "small", "middle")
    picture.text((WIDTH - 16, 24), "time →", "small", "end")
    return picture.svg()


# --- push --------------------------------------------------------------------------------------

_ACTORS = ((92.0, "publish"), (268.0, "web server"), (450.0, "hub"), (640.0, "watch"))
_MESSAGES = (
    (92.0, 268.0, "1", "the Change List"),
    (92.0, 450.0, "2", "“the Change List has news”, signed"),
    (450.0, 640.0, "3", "the same, to each subscriber"),
    (640.0, 268.0, "4", "GET the Change List, then the resource"),
    (268.0, 640.0, "5", "bytes, checked by length and hash"),
)


def draw_push() -> str:
    """Draw the way of one change from a publication to a mirror."""
    picture = Picture(WIDTH, 340, "The way of one change by push, from the Source to a mirror")
    for x, name in _ACTORS:
        picture.line((x, 56), (x, 300), "lane")
        _boxed(picture, (x - 62, 18, 124, 38), name)
    for row, (start, end, number, words) in enumerate(_MESSAGES):
        y = 92.0 + 46 * row
        picture.arrow((start, y), (end, y))
        left, right = sorted((start, end))
        picture.text(((left + right) / 2, y - 8), f"{number}  {words}", "over", "middle")
    picture.text((640, 318), "In sync", "name", "middle")
    return picture.svg()


# --- deletion ----------------------------------------------------------------------------------

_QUESTIONS = (
    (("Did pull install this file?", "and is it unchanged since"), "stays: it is not ours"),
    (
        ("Is it gone at the Source?", "deleted in a Change List, or absent from a newer list"),
        "stays",
    ),
    (
        ("Was everything understood?", "each list; for absence, each entry too"),
        "stays; not in sync",
    ),
    (("Does --delete allow it?",), "stays, and is counted"),
    (("Is this run within --max-delete?", "at first 10 % of the copies"), "held: exit code 7"),
)


def draw_deletion() -> str:
    """Draw the questions that decide whether a copy is deleted."""
    height = 68 * len(_QUESTIONS) + 64
    picture = Picture(WIDTH, height, "The questions before a copy is deleted; each No leaves it")
    for number, (question, answer) in enumerate(_QUESTIONS):
        y = 16.0 + 68 * number
        _boxed(picture, (16, y, 430, 44), *question)
        picture.arrow((446, y + 22), (512, y + 22))
        picture.text((478, y + 16), "no", "small", "middle")
        picture.text((520, y + 27), answer)
        picture.line((231, y + 44), (231, y + 60))
        picture.arrow_down((231, y + 68))
        picture.text((240, y + 60), "yes", "small")
    _boxed(picture, (16, height - 48.0, 430, 38), "moved to the trash, for 30 days")
    return picture.svg()


# --- a crash -----------------------------------------------------------------------------------

_STEPS = ("receive", "check", "mark suspect", "sync file", "rename", "sync folder", "commit")
_BANDS: Sequence[tuple[int, int, str, str]] = (
    (0, 4, "the old file, and a temporary one", "is fetched again"),
    (4, 6, "the new file, suspect", "is checked again"),
    (6, 7, "the new file", "nothing"),
)


def draw_crash() -> str:
    """Draw the order of steps, and what a crash between them leaves."""
    picture = Picture(WIDTH, 232, "The steps of a file, and what a crash between them leaves")
    step = (WIDTH - 32) / len(_STEPS)
    places: list[Point] = [(16 + step * (number + 0.5), 44) for number in range(len(_STEPS))]
    picture.line(places[0], places[-1], "path")
    for number, (place, name) in enumerate(zip(places, _STEPS, strict=True), 1):
        picture.dot(place, number)
        picture.text((place[0], 78), name, "name", "middle")
    picture.text((16, 116), "A crash here leaves", "small")
    for first, last, state, action in _BANDS:
        left, right = 16 + step * first + 4, 16 + step * last - 4
        picture.box(left, 126, right - left, 84)
        middle = (left + right) / 2
        for row, (line, style) in enumerate(((state, ""), ("next run:", "small"), (action, ""))):
            picture.text((middle, 150 + 22 * row), line, style, "middle")
    return picture.svg()


PICTURES: dict[str, Callable[[], str]] = {
    "explanation/source-offers.svg": draw_offers,
    "explanation/baseline-and-changes.svg": draw_pulls,
    "explanation/push.svg": draw_push,
    "explanation/deletion.svg": draw_deletion,
    "explanation/crash-order.svg": draw_crash,
}
"""The pictures, by their place in ``docs``."""
