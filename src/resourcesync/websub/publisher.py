"""A Source's side of push: tells hubs what became of it (Notification §4.1)."""

from dataclasses import dataclass
from typing import Final

from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse, Message, Purpose
from resourcesync.ports.subscriptions import Messenger
from resourcesync.websub import messages
from resourcesync.websub.delivery import BodySink
from resourcesync.websub.signatures import sign

_SUCCESS: Final = range(200, 300)
_REFUSED: Final = range(400, 500)
_TOO_MANY: Final = 429


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What a hub is to be told.

    Attributes:
        hub: Which hub.
        topic: The channel.
        body: The payload, which can be read at the topic too.
    """

    hub: str
    topic: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeOutcome:
    """What became of a notice.

    Attributes:
        notice: Which.
        problem: Why the hub does not have it; empty when it has.
        is_plain: True if it was only told to look, since it takes no payload.
    """

    notice: Notice
    problem: str = ""
    is_plain: bool = False


def send_notices(
    messenger: Messenger, notices: list[Notice], key: bytes = b""
) -> list[NoticeOutcome]:
    """Tell hubs, all at a time; one that is away keeps no other waiting.

    A hub that takes no payload, as those that are not of ResourceSync do, is told to look at the
    topic (``hub.mode=publish``).

    Args:
        messenger: Carries the messages.
        notices: What is to be told.
        key: Signs the payloads; empty for none.
    """
    fat = {_payload(notice, key): notice for notice in notices}
    found: list[NoticeOutcome] = []
    plain: dict[FetchRequest, Notice] = {}
    for outcome in messenger.fetch(list(fat)):
        notice = fat[outcome.request]
        if _refuses_payload(outcome):
            plain[_ping(notice)] = notice
        else:
            found.append(NoticeOutcome(notice=notice, problem=_problem(outcome)))
    for outcome in messenger.fetch(list(plain)):
        notice = plain[outcome.request]
        found.append(NoticeOutcome(notice=notice, problem=_problem(outcome), is_plain=True))
    return found


def _payload(notice: Notice, key: bytes) -> FetchRequest:
    fields = [
        ("Content-Type", messages.XML),
        ("Link", messages.link_field(notice.topic, [notice.hub])),
    ]
    if key:
        fields.append((messages.SIGNATURE, sign(key, notice.body)))
    return _post(notice.hub, Message(body=notice.body, fields=tuple(fields)))


def _ping(notice: Notice) -> FetchRequest:
    fields = (("Content-Type", messages.FORM),)
    return _post(notice.hub, Message(body=messages.ping_form(notice.topic), fields=fields))


def _post(hub: str, message: Message) -> FetchRequest:
    return FetchRequest(uri=hub, sink=BodySink(), purpose=Purpose.MESSAGE, message=message)


def _refuses_payload(outcome: FetchResponse | FetchFailure) -> bool:
    return (
        isinstance(outcome, FetchResponse)
        and outcome.status in _REFUSED
        and (outcome.status != _TOO_MANY)
    )


def _problem(outcome: FetchResponse | FetchFailure) -> str:
    if isinstance(outcome, FetchFailure):
        return outcome.error.message
    return "" if outcome.status in _SUCCESS else f"it answers {outcome.status}"
