"""The scenarios that our Destination goes through."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from resourcesync.documents import Resource
from tests.conformance.scenario_site import ScriptedAnswer, ScriptedSite
from tests.conformance.scenario_source import (
    CHANGES,
    RESOURCES,
    ScriptedSource,
)

_NAMES: Final = ("index.html", "a/one.txt", "a/two.txt", "b/three.txt", "b/c/four.txt")
_SLOW: Final = 2.0


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a scenario: what is served, and what a copy must be after a pull.

    Attributes:
        title: What happened at the Source.
        site: What it serves.
        expected: The contents that must be there, by the names of their resources.
        is_possible: True if a pull can reach it: then it must report success, else failure;
            ``None`` if both are right.
        tolerated: Contents that may be there, or not.
    """

    title: str
    site: ScriptedSite
    expected: Mapping[str, bytes]
    is_possible: bool | None = True
    tolerated: frozenset[bytes] = frozenset()


Script = Callable[[ScriptedSource], Iterator[Step]]


def _step(source: ScriptedSource, title: str, site: ScriptedSite | None = None) -> Step:
    return Step(title=title, site=site or source.site(), expected=dict(source.contents))


def _begin(source: ScriptedSource, *names: str) -> Step:
    source.put(*(names or _NAMES))
    source.list_resources()
    source.forget_changes()
    return _step(source, "published")


def _baseline(source: ScriptedSource) -> Iterator[Step]:
    yield _begin(source)
    yield _step(source, "nothing new")


def _changes(source: ScriptedSource) -> Iterator[Step]:
    yield _begin(source)
    source.put("a/new.txt")
    source.list_resources()
    yield _step(source, "created")
    source.put("a/one.txt", text="second")
    source.list_resources()
    yield _step(source, "updated")
    source.remove("b/three.txt")
    source.list_resources()
    yield _step(source, "deleted")


def _changes_alone(source: ScriptedSource) -> Iterator[Step]:
    yield _begin(source)
    source.put("a/new.txt")
    source.put("a/one.txt", text="second")
    source.remove("a/two.txt")
    yield _step(source, "created, updated, deleted; the Resource List is as before")


def _repeated_changes(source: ScriptedSource) -> Iterator[Step]:
    yield _begin(source)
    source.put("a/one.txt", text="second")
    source.remove("a/one.txt")
    source.put("a/one.txt", text="third")
    source.put("a/new.txt")
    source.remove("a/new.txt")
    yield _step(source, "updated, deleted and created again; created and deleted")


def _gap(source: ScriptedSource) -> Iterator[Step]:
    yield _begin(source)
    source.put("a/new.txt")
    source.put("a/one.txt", text="second")
    source.remove("a/two.txt")
    source.list_resources()
    source.forget_changes()
    yield _step(source, "the Change List begins after the changes")


def _lists_alone(source: ScriptedSource) -> Iterator[Step]:
    source.put(*_NAMES)
    source.list_resources()
    yield _step(source, "published", source.site_without_changes())
    source.put("a/new.txt")
    source.remove("a/two.txt")
    source.list_resources()
    yield _step(source, "created, deleted", source.site_without_changes())


def _index(source: ScriptedSource) -> Iterator[Step]:
    source.put(*(f"part/{number:02}.txt" for number in range(25)))
    source.list_resources()
    yield _step(source, "an index of three parts", source.site_of_parts(10))
    source.put("part/99.txt")
    source.remove("part/00.txt")
    source.list_resources()
    yield _step(source, "the parts moved", source.site_of_parts(10))


def _names(source: ScriptedSource) -> Iterator[Step]:
    yield _begin(
        source,
        "a blank.txt",
        "na\u00efve/\u6587.txt",
        "query.php?id=1&lang=de",
        "query.php?id=2&lang=de",
        "plus+tilde~.txt",
        "100%25.txt",
        "case.txt",
        "CASE.txt",
    )


def _folder_and_file(source: ScriptedSource) -> Iterator[Step]:
    yield _begin(source, "docs", "docs/page", "docs/page/part")


def _contradicting_hash(source: ScriptedSource) -> Iterator[Step]:
    first = _begin(source)
    wrong = b"these bytes are not what is listed\n"
    site = first.site.with_answers({"a/one.txt": ScriptedAnswer(body=wrong)})
    expected = {name: body for name, body in source.contents.items() if name != "a/one.txt"}
    yield Step(
        title="one resource is not what the list says",
        site=site,
        expected=expected,
        is_possible=False,
    )
    yield _step(source, "it is again")


def _cut_short(source: ScriptedSource) -> Iterator[Step]:
    first = _begin(source)
    whole = source.contents["a/one.txt"]
    cut = ScriptedAnswer(body=whole[:9], claimed=len(whole))
    expected = {name: body for name, body in source.contents.items() if name != "a/one.txt"}
    yield Step(
        title="one response ends too early",
        site=first.site.with_answers({"a/one.txt": cut}),
        expected=expected,
        is_possible=False,
        tolerated=frozenset({whole}),
    )
    yield _step(source, "it is whole")


def _missing(source: ScriptedSource) -> Iterator[Step]:
    first = _begin(source)
    expected = {name: body for name, body in source.contents.items() if name != "a/one.txt"}
    yield Step(
        title="one listed resource is not served (404)",
        site=first.site.with_answers({"a/one.txt": ScriptedAnswer(status=404)}),
        expected=expected,
        is_possible=False,
    )
    yield _step(source, "it is served")


def _busy(source: ScriptedSource) -> Iterator[Step]:
    first = _begin(source)
    busy = ScriptedAnswer(body=source.contents["a/one.txt"], failures=1)
    yield _step(source, "503 once, with Retry-After", first.site.with_answers({"a/one.txt": busy}))


def _redirect(source: ScriptedSource) -> Iterator[Step]:
    first = _begin(source)
    moved = {
        "a/one.txt": ScriptedAnswer(status=302, location=f"{source.base}moved/one.txt"),
        "moved/one.txt": ScriptedAnswer(body=source.contents["a/one.txt"]),
    }
    yield _step(source, "one resource redirects", first.site.with_answers(moved))


def _slow(source: ScriptedSource) -> Iterator[Step]:
    first = _begin(source)
    slow = ScriptedAnswer(body=source.contents["a/one.txt"], pause=_SLOW)
    site = first.site.with_answers({"a/one.txt": slow})
    yield _step(source, f"one response pauses for {_SLOW:.0f} s", site)


def _escape(source: ScriptedSource) -> Iterator[Step]:
    first = _begin(source)
    places = (
        "../escaped-1.txt",
        "../../escaped-2.txt",
        "a/%2e%2e/%2e%2e/%2e%2e/escaped-3.txt",
        "..%2f..%2fescaped-4.txt",
        "a/..%5c..%5cescaped-5.txt",
        "//escaped-6.txt",
        "%2fescaped-7.txt",
        "a/.././../escaped-8.txt",
    )
    bodies = {place: f"content of {place}\n".encode() for place in places}
    listed = [source.resource(name) for name in sorted(source.contents)]
    listed += [Resource(uri=source.base + place, length=len(bodies[place])) for place in places]
    answers = {place: ScriptedAnswer(body=body) for place, body in bodies.items()}
    answers |= {quote(place, safe="/"): ScriptedAnswer(body=body) for place, body in bodies.items()}
    answers[RESOURCES] = ScriptedAnswer(body=source.resource_list(listed))
    yield Step(
        title="the list has names that lead out of the folder",
        site=first.site.with_answers(answers),
        expected=dict(source.contents),
        is_possible=None,
        tolerated=frozenset(bodies.values()),
    )


def _damaged_list(source: ScriptedSource) -> Iterator[Step]:
    yield _begin(source)
    source.put("a/new.txt")
    source.remove("a/two.txt")
    source.list_resources()
    site = source.site()
    halves = {
        name: ScriptedAnswer(body=site.answers[name].body[: len(site.answers[name].body) // 2])
        for name in (RESOURCES, CHANGES)
    }
    before = {name: body for name, body in source.contents.items() if name != "a/new.txt"}
    yield Step(
        title="the lists are cut in half",
        site=site.with_answers(halves),
        expected=before,
        is_possible=False,
        tolerated=frozenset({b"first content of a/new.txt\n", b"first content of a/two.txt\n"}),
    )
    yield _step(source, "they are whole")


def _lists_away(source: ScriptedSource) -> Iterator[Step]:
    first = _begin(source)
    yield first
    away = dict.fromkeys(
        [*first.site.answers.keys() - source.contents.keys()], ScriptedAnswer(status=500)
    )
    yield Step(
        title="all documents are answered with 500",
        site=first.site.with_answers(away),
        expected=dict(source.contents),
        is_possible=False,
    )
    yield _step(source, "they are served")


SCENARIOS: Final[Mapping[str, Script]] = {
    "baseline": _baseline,
    "changes": _changes,
    "changes-alone": _changes_alone,
    "repeated": _repeated_changes,
    "gap": _gap,
    "lists-alone": _lists_alone,
    "index": _index,
    "names": _names,
    "nested": _folder_and_file,
    "hash": _contradicting_hash,
    "cut": _cut_short,
    "missing": _missing,
    "busy": _busy,
    "redirect": _redirect,
    "slow": _slow,
    "escape": _escape,
    "damaged": _damaged_list,
    "away": _lists_away,
}
"""All scenarios, the simplest first."""
