"""The checks of WebSub's public test site, by HTTP alone, against our three parts."""

from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest

from resourcesync.documents import reader
from resourcesync.websub.messages import read_links
from tests.support.servers.listening import Listener
from tests.support.servers.pushing import served_with_hub
from tests.support.websub.hub_checks import HUB_CHECKS, XML, check_hub
from tests.support.websub.ours import NOTIFICATION, our_hub, our_subscriber
from tests.support.websub.subscriber_checks import SUBSCRIBER_CHECKS, Site, check_subscriber

OF_HUBS: Final = [number for number, (_, kind, _) in HUB_CHECKS.items() if kind == XML]
OF_SUBSCRIBERS: Final = [number for number in SUBSCRIBER_CHECKS if number not in {"102", "103"}]


@pytest.mark.parametrize("number", OF_HUBS)
def test_our_hub_passes_a_check_of_hubs(number: str, tmp_path: Path) -> None:
    with our_hub(tmp_path / "public") as hub:
        check_hub(number, hub)


@pytest.mark.parametrize("number", OF_SUBSCRIBERS)
def test_our_service_passes_a_check_of_subscribers(number: str, tmp_path: Path) -> None:
    with Listener() as listener:
        site = Site(listener, NOTIFICATION)
        with our_subscriber(tmp_path, site) as subscriber:
            check_subscriber(number, subscriber, site)


def test_our_topics_name_themselves_and_their_hub_in_both_ways(tmp_path: Path) -> None:
    root = tmp_path / "public"
    root.mkdir()
    (root / "a.txt").write_text("a")
    with served_with_hub(root) as base:
        for name in ("changenotification.xml", "frameworknotification.xml"):
            topic = f"{base}resourcesync/{name}"
            with urlopen(topic, timeout=10) as answer:
                link, body = answer.headers["link"], answer.read()
            header = reader.read(body).header
            assert read_links(link) == ((topic,), (f"{base}hub",))
            assert header.itself is not None
            assert header.itself.href == topic
            assert [hub.href for hub in header.hubs] == [f"{base}hub"]
