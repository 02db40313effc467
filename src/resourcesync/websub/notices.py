"""Publisher's side of push: notices of changes are sent to hubs (Notification §4.1)."""

from collections.abc import Sequence
from typing import Final

import msgspec

from resourcesync import ports
from resourcesync.websub import messages
from resourcesync.websub.messages import post_request, sign

_REFUSED: Final = frozenset(range(400, 500)) - {429}  # too many requests


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A message for a hub: the payload of a channel, which can be read at the topic too."""

    hub: str
    topic: str
    body: bytes


class NoticeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a notice: why the hub does not have it, or whether only a ping was sent."""

    notice: Notice
    problem: str = ""
    is_plain: bool = False


def send_notices(
    messenger: ports.Messenger, notices: Sequence[Notice], key: bytes = b""
) -> list[NoticeOutcome]:
    """Send notices to hubs concurrently; an unavailable hub delays no other.

    A hub that accepts no payload, as those that are not of ResourceSync do, gets a ping for the
    topic (``hub.mode=publish``).
    """
    fat = {_payload(notice, key): notice for notice in notices}
    found: list[NoticeOutcome] = []
    plain: dict[ports.FetchRequest, Notice] = {}
    for outcome in messenger.fetch(list(fat)):
        notice = fat[outcome.request]
        if isinstance(outcome, ports.FetchResponse) and outcome.status in _REFUSED:
            ping = messages.ping_form(notice.topic)
            plain[post_request(notice.hub, ping, messages.FORM)] = notice
        else:
            found.append(NoticeOutcome(notice=notice, problem=_problem(outcome)))
    for outcome in messenger.fetch(list(plain)):
        notice = plain[outcome.request]
        found.append(NoticeOutcome(notice=notice, problem=_problem(outcome), is_plain=True))
    return found


def _payload(notice: Notice, key: bytes) -> ports.FetchRequest:
    fields = [("Link", messages.link_field(notice.topic, [notice.hub]))]
    if key:
        fields.append((messages.SIGNATURE, sign(key, notice.body)))
    return post_request(notice.hub, notice.body, messages.XML, *fields)


def _problem(outcome: ports.FetchResponse | ports.FetchFailure) -> str:
    if isinstance(outcome, ports.FetchFailure):
        return outcome.error.message
    return "" if outcome.status in messages.SUCCESS else f"HTTP status {outcome.status}"
