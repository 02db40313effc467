"""A Source that writes its Change List anew, or that is set back to what it was."""

import re
from datetime import datetime, timedelta
from typing import Any

from tests.support.crashes import killing
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

CHANGE_LIST = BASE + "resourcesync/changelist.xml"
CAPABILITY_LIST = BASE + "resourcesync/capabilitylist.xml"
_URL = re.compile(r"<url>.*?</url>", re.DOTALL)
_LOC = re.compile(r"<loc>(.*?)</loc>")
_HOT = [f"hot/{number}.html" for number in range(17)]
"""More resources than the changes that a mirror remembers."""


def merged(body: bytes) -> bytes:
    text = body.decode()
    last = {_LOC.findall(url)[0]: url for url in _URL.findall(text)}
    start, end = text.index("<url>"), text.rindex("</url>") + len("</url>")
    kept = [url for url in _URL.findall(text) if last[_LOC.findall(url)[0]] == url]
    return (text[:start] + "".join(kept) + text[end:]).encode()


def changed(world: World[PublishedSource], *names: str, text: str) -> None:
    for name in names:
        world.source.publish_file(name, text)


def heated(world: World[PublishedSource], text: str) -> None:
    for name in _HOT:
        world.source.put(name, text)
    world.source.publish()


def set_back(world: World[PublishedSource], to: PublishedSource) -> None:
    world.source = to.saved()


def killed(world: World[Any], writes: int, **options: Any) -> bool:
    """Kill a pull after so many writes; return whether it had not come to its end before."""
    with killing.killed(world.home, writes) as fuse:
        world.pull(**options)
    return fuse.is_burnt


def sliding(world: World[PublishedSource], begin: datetime) -> Answer:
    """A Change List of the last days, which may not reach back to the Resource List."""
    from_ = begin.strftime("%Y-%m-%dT%H:%M:%SZ")
    body = world.source.honest(CHANGE_LIST).body.decode()
    body = re.sub(r'(capability="changelist"[^>]*from=")[^"]*', rf"\g<1>{from_}", body)

    def kept(match: re.Match[str]) -> str:
        time = re.search(r'datetime="([^"]*)"', match[0])
        return match[0] if time is not None and time[1] >= from_ else ""

    return Answer(body=_URL.sub(kept, body).encode())


def slid_past_a_file(world: World[PublishedSource]) -> None:
    """Let the Change List lose ``since.html``, which is here and in no Resource List."""
    begin = world.clock.now() + timedelta(days=3)
    changed(world, "since.html", text="not in the Resource List")
    world.pull()
    world.clock.advance(seconds=3 * 86_500)
    changed(world, "objects/0001.html", text="some")
    world.pull()
    world.network.answers[CHANGE_LIST] = lambda _: sliding(world, begin)
    changed(world, "objects/0002.html", text="some")
    world.pull()


def no_longer_offers(world: World[PublishedSource], kind: str) -> None:
    body = world.source.honest(CAPABILITY_LIST).body.decode()
    kept = _URL.sub(lambda entry: "" if f'"{kind}"' in entry[0] else entry[0], body)
    world.network.answers[CAPABILITY_LIST] = Answer(body=kept.encode())
