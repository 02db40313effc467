"""Feeds as sitemaps: what of them is a page, and what a mirror says of the rest."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World

FEED = BASE + "feed.xml"
RSS = """<rss version="2.0"><channel>
<item><link>{page}</link></item><item><description>no link</description></item>
<item><guid isPermaLink="false">7</guid></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="{page}"/></entry>
<entry><link rel="self" href="/entries/7"/><content>all of it</content></entry></feed>"""


@pytest.mark.parametrize("feed", [RSS, ATOM])
def test_an_item_without_a_page_is_left_out_and_the_mirror_is_in_sync(
    tmp_path: Path, feed: str
) -> None:
    world = World(tmp_path / "mirror")
    world.source.put("one.html", "one")
    world.network.answers[FEED] = Answer(body=feed.format(page=BASE + "one.html").encode())

    report = world.pull(FEED)

    assert (report.created, report.listed.refused, report.state) == (1, 0, MirrorState.IN_SYNC)
    assert "feed-unlinked" in [fields["code"] for fields in world.told("leniency")]
    assert world.audit().in_sync
