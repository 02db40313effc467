"""Verification of intent (WebSub §5.3): a hub's question, and the answer that confirms it."""

from typing import Final
from urllib.parse import urlencode

import msgspec

from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse, Purpose
from resourcesync.push_state.rows import SubscriptionIntent
from resourcesync.websub.messages import SUCCESS, BodySink, HubMode

MOST_CHALLENGE: Final = 4 * 1024


class PendingVerification(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A receiver's request whose intent the hub verifies."""

    intent: SubscriptionIntent
    challenge: str
    sink: BodySink = msgspec.field(default_factory=BodySink)

    def request(self) -> FetchRequest:
        """Return the request that asks the receiver."""
        uri = verification_uri(self.intent, self.challenge)
        return FetchRequest(uri=uri, sink=self.sink, purpose=Purpose.MESSAGE, limit=MOST_CHALLENGE)

    def is_confirmed_by(self, outcome: FetchResponse | FetchFailure) -> bool:
        """True if the receiver answered with the challenge alone."""
        is_answer = isinstance(outcome, FetchResponse) and outcome.status in SUCCESS
        return is_answer and bytes(self.sink.body) == self.challenge.encode()


def verification_uri(intent: SubscriptionIntent, challenge: str) -> str:
    """Return the address of a verification of the receiver's intent (§5.3).

    The callback's own query is unchanged, and precedes ours.
    """
    said = {"hub.mode": intent.mode, "hub.topic": intent.topic, "hub.challenge": challenge}
    if intent.mode == HubMode.SUBSCRIBE:
        said["hub.lease_seconds"] = str(intent.lease)
    mark = "&" if "?" in intent.callback else "?"
    return f"{intent.callback}{mark}{urlencode(said)}"


def is_challenge(text: str) -> bool:
    """True if a subscriber may send a text back as the challenge of a hub."""
    return 0 < len(text) <= MOST_CHALLENGE
