"""A hub over loopback: wishes are verified, notifications are delivered."""

from pathlib import Path

from resourcesync.websub.signatures import is_signed
from tests.support.hubs import TOPIC, payload, running_hub
from tests.support.listening import Listener


def test_what_is_submitted_reaches_who_subscribed_signed_and_byte_by_byte(tmp_path: Path) -> None:
    body = payload()
    with Listener() as listener, running_hub(tmp_path / "hub.db") as hub:
        assert hub.subscribe(f"{listener.origin}/me?a=b", secret="s3cret").status == 202
        assert listener.wait(lambda: hub.subscribed() == 1)

        assert hub.submit(body).status == 204
        assert listener.wait(lambda: len(listener.posts()) == 1)

    [delivery] = listener.posts()
    assert delivery.body == body
    assert delivery.target == "/me?a=b"
    assert delivery.fields["content-type"] == "application/xml"
    assert delivery.fields["link"] == f'<{TOPIC}>; rel="self", <{hub.uri}hub>; rel="hub"'
    assert is_signed(b"s3cret", body, [delivery.fields["x-hub-signature"]])
