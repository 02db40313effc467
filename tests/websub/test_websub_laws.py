"""What holds of signatures, leases, allowances, forms and merged payloads, whatever comes."""

import string
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.documents import read
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind
from resourcesync.websub import messages, payloads
from resourcesync.websub.hub import RateLimiter
from resourcesync.websub.messages import (
    METHODS,
    MICROSECONDS,
    HubMode,
    MonotonicTime,
    SubscriptionRequest,
    is_signed,
    sign,
)
from tests.support.servers.hubs import TOPIC, payload

few = settings(max_examples=30)
bodies = st.binary(max_size=200)
secrets = st.binary(min_size=1, max_size=199)
methods = st.sampled_from(METHODS)


@few
@given(secret=secrets, body=bodies, method=methods)
def test_a_body_is_signed_by_its_own_signature(secret: bytes, body: bytes, method: str) -> None:
    value = sign(secret, body, method)
    assert is_signed(secret, body, [value], METHODS)
    assert is_signed(secret, body, [value]) is (method != "sha1")


@few
@given(secret=secrets, body=bodies, method=methods, data=st.data())
def test_a_change_of_anything_breaks_a_signature(
    secret: bytes, body: bytes, method: str, data: st.DataObject
) -> None:
    value = sign(secret, body, method)
    at = data.draw(st.integers(0, len(value) - 1))
    other = data.draw(st.characters().filter(lambda name: name != value[at]))
    assert not is_signed(secret, body, [value[:at] + other + value[at + 1 :]], METHODS)
    assert not is_signed(secret, body + b"x", [value], METHODS)
    assert not is_signed(secret + b"x", body, [value], METHODS)
    assert not is_signed(secret, body, [value, value], METHODS)


@few
@given(text=st.text(max_size=20) | st.integers().map(str))
def test_a_lease_of_any_text_is_within_its_bounds(text: str) -> None:
    seconds = messages.parse_seconds(text)
    assert seconds is None or (seconds > 0 and text.isascii() and int(text) == seconds)
    assert messages.SHORTEST_LEASE <= messages.bounded_lease(seconds) <= messages.LONGEST_LEASE


@few
@given(attempts=st.integers(0, 10_000), chance=st.floats(0.0, 1.0))
def test_a_delay_grows_and_never_over_its_bound(attempts: int, chance: float) -> None:
    found = messages.retry_delay(attempts, chance)
    assert 0.5 <= found <= 3_600.0
    assert found <= messages.retry_delay(attempts + 2, chance)


@few
@given(steps=st.lists(st.tuples(st.integers(-(10**9), 10**9), st.floats(0.0, 1e4)), max_size=20))
def test_time_for_leases_never_goes_back(steps: list[tuple[int, float]]) -> None:
    wall, elapsed = 10**12, 5.0
    time = MonotonicTime(wall, elapsed, latest=wall + 77)
    last = time.at(wall, elapsed)
    assert last == wall + 77
    for jump, passed in steps:
        wall, elapsed = wall + jump, elapsed + passed
        now = time.at(wall, elapsed)
        assert now >= wall
        assert now - 10**12 - 77 >= int((elapsed - 5.0) * MICROSECONDS) - 1
        last = max(last, now)


@few
@given(
    most=st.integers(1, 20),
    gaps=st.lists(st.floats(0.0, 30.0), min_size=1, max_size=100),
)
def test_an_allowance_is_never_exceeded(most: int, gaps: list[float]) -> None:
    allowance = RateLimiter(most)
    now, begin, granted = 100.0, 100.0, 0
    for gap in gaps:
        now += gap
        granted += allowance.acquire("one", now)
        assert granted <= most + (now - begin) * most / 60 + 1e-6
    assert allowance.acquire("other", now)


def test_an_allowance_forgets_who_asked_longest_ago() -> None:
    allowance = RateLimiter(1)
    for number in range(10_001):
        assert allowance.acquire(str(number), 0.0)
    assert allowance.acquire("0", 0.0)
    assert not allowance.acquire("10000", 0.0)


words = st.text(string.ascii_letters + string.digits + "-._~/", max_size=20)
callbacks = st.builds(
    lambda host, path, query: (
        f"https://{host or 'h'}.example/{path}" + (f"?{query}" if query else "")
    ),
    st.text(string.ascii_lowercase, max_size=10),
    words,
    st.text(string.ascii_letters + "=&%?", max_size=20),
)


@few
@given(
    mode=st.sampled_from([HubMode.SUBSCRIBE, HubMode.UNSUBSCRIBE]),
    callback=callbacks,
    secret=st.text(string.printable[:95], max_size=150),
    lease=st.integers(3_600, 2_592_000),
)
def test_a_wish_is_read_as_it_was_written(
    mode: HubMode, callback: str, secret: str, lease: int
) -> None:
    is_wanted = mode is HubMode.SUBSCRIBE
    wish = SubscriptionRequest(
        mode=mode,
        topic=TOPIC,
        callback=callback,
        secret=secret.encode() if is_wanted else b"",
        lease=lease if is_wanted else None,
    )
    fields = messages.read_fields(messages.subscription_form(wish))
    assert fields is not None
    assert messages.read_subscription_request(fields) == wish


@few
@given(callback=callbacks, challenge=words, echo=words)
def test_a_question_keeps_the_callback_and_is_understood(
    callback: str, challenge: str, echo: str
) -> None:
    wish = SubscriptionRequest(mode=HubMode.SUBSCRIBE, topic=TOPIC, callback=callback, echo=echo)
    uri = messages.verification_uri(wish, challenge, 4_000)
    assert uri.startswith(callback + ("&" if "?" in callback else "?"))
    ours = uri[len(callback) + 1 :].encode()
    question = messages.read_hub_query(ours)
    assert question is not None
    assert (question.mode, question.topic) == ("subscribe", TOPIC)
    assert (question.challenge, question.lease) == (challenge, "4000")
    assert urlsplit(uri).netloc == urlsplit(callback).netloc


@few
@given(raw=st.binary(max_size=300))
def test_any_bytes_are_a_form_or_none(raw: bytes) -> None:
    fields = messages.read_fields(raw)
    if fields is not None:
        messages.read_subscription_request(fields)
    messages.read_hub_query(raw)
    assert payloads.kind_of(raw) is None


START = datetime(2026, 11, 21, tzinfo=UTC)
uris = st.integers(0, 5).map(lambda number: f"https://museum.example/{number}")
told = st.lists(
    st.lists(st.tuples(uris, st.sampled_from(ChangeKind)), max_size=5), min_size=1, max_size=5
)


@few
@given(told=told)
def test_merged_payloads_tell_the_newest_of_each_uri_and_the_whole_interval(
    told: list[list[tuple[str, ChangeKind]]],
) -> None:
    links = payloads.channel_links("https://museum.example/c.xml", TOPIC, ["https://hub.example/"])
    moment, made, newest = START, [], {}
    for entries in told:
        since = moment
        changes = []
        for uri, kind in entries:
            moment += timedelta(seconds=1)
            changes.append(Change(kind=kind, time=moment, resource=Resource(uri=uri)))
            newest[uri] = (kind, moment)
        made.append(payloads.change_notification(links, changes, since=since, until=moment))

    document = read(payloads.merge(made))
    found = list(document.entries())

    assert all(isinstance(item, Change) for item in found)
    times = [item.time for item in found if isinstance(item, Change) and item.time is not None]
    if len(made) > 1:
        assert {
            item.uri: (item.kind, item.time) for item in found if isinstance(item, Change)
        } == newest
        assert times == sorted(times)
    assert (document.header.from_, document.header.until) == (START, moment)
    assert document.header.capability is Capability.CHANGE_NOTIFICATION
    assert document.header.links == links


def test_what_would_be_too_much_in_one_is_the_last_alone() -> None:
    many = [
        payload(*(f"https://museum.example/{n}/{number}" for number in range(600)), minute=n)
        for n in (0, 1)
    ]
    assert payloads.merge(many) == many[-1]
    few = [payload(minute=number) for number in range(3)]
    assert payloads.merge(few, most=100) == few[-1]
    assert payloads.merge([few[0], b"<x", few[1]]) == few[1]
    assert payloads.merge([few[0], few[1].replace(b"change-notification", b"changelist")]) != few[0]
    assert payloads.merge(few[:1]) == few[0]
